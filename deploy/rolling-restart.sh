#!/bin/sh
# Restarts the instances petstore@PORT of deploy/petstore@.service one after another: sh rolling-restart.sh 8081 8082
set -eu
[ $# -gt 0 ] || { echo "Usage: sh rolling-restart.sh PORT..." >&2; exit 2; }
for port in "$@"; do
  echo "Restarting petstore@$port"
  # Waits until the requests in progress have their responses.
  systemctl restart "petstore@$port"
  seconds=0
  until "${PETSTORE:-/opt/petstore/bin/petstore}" health --port "$port" --check readyz >/dev/null 2>&1; do
    seconds=$((seconds + 1))
    if [ "$seconds" -gt 120 ] || systemctl is-failed --quiet "petstore@$port"; then
      echo "petstore@$port does not start, and the other instances still run: see journalctl -u petstore@$port" >&2
      exit 1
    fi
    sleep 1
  done
  # For 2 s (fail_timeout), nginx does not use an instance that failed.
  sleep 3
done
echo "All instances are restarted"
