kill -CONT $(cat m*.pid) 2>/dev/null; kill $(cat *.pid) 2>/dev/null; sleep 0.3
