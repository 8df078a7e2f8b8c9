module pteros_listener

go 1.20
