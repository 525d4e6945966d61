#!/usr/bin/env bash
# Builds the npm package. Usage: packaging/npm/pack.sh OUT PLATFORM=BINARY…, such as linux-x64=target/release/conformant.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1; shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/package.json" "$here/bin" "$work"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -1)
sed -i "s/\"version\": \"[^\"]*\"/\"version\": \"$version\"/" "$work/package.json"
for program in "$@"; do
  platform=${program%%=*}
  mkdir -p "$work/binaries/$platform"
  case $platform in win32-*) name=conformant.exe ;; *) name=conformant ;; esac
  install -m 755 "${program#*=}" "$work/binaries/$platform/$name"
done
mkdir -p "$out"
(cd "$work" && npm pack --silent --pack-destination "$(cd "$OLDPWD" && cd "$out" && pwd)")
