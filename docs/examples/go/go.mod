module chat

go 1.18
