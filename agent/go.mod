module proxima.io/agent

go 1.26
