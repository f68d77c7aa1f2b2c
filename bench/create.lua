wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"name":"Rex","categoryId":7,"status":"available"}'
