for p in 22001 22002 22003; do memcached -u root -l 127.0.0.1:$p -U 0 & echo $! > m$p.pid; done
/work/main/target/debug/proxima check p.yaml
/work/main/target/debug/proxima run --config p.yaml --node-address 127.0.0.1 $* > log 2>&1 & echo $! > p.pid
sleep 0.7
