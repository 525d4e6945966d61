source "$root/benches/peers/hurl.sh"
what='the same without mutation testing'
options=(--prove off)
