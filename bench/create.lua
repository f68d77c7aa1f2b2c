wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"name":"Rex","categoryId":9007199254740993,"status":"available"}'
