#!/usr/bin/env bash
# Installs the program for the composite action: from an archive that is pinned by its checksum, or else from these sources.
# INPUT_URL, INPUT_SHA256 and INPUT_BINARY are the inputs of the action. Bash 3.2 is enough.
set -euo pipefail
if [ -n "${INPUT_URL:-}" ]; then
  work=$(mktemp -d)
  curl -fsSL "$INPUT_URL" -o "$work/conformant.tar.gz"
  if command -v sha256sum >/dev/null; then sum=$(sha256sum "$work/conformant.tar.gz"); else sum=$(shasum -a 256 "$work/conformant.tar.gz"); fi
  if [ "${sum%% *}" != "${INPUT_SHA256:-}" ]; then
    echo "the checksum of $INPUT_URL is ${sum%% *}, expected the input sha256 \`${INPUT_SHA256:-}\`" >&2
    exit 2
  fi
  mkdir -p "$HOME/bin"
  tar -xzf "$work/conformant.tar.gz" -C "$HOME/bin"
  rm -rf "$work"
  echo "$HOME/bin" >>"${GITHUB_PATH:-/dev/null}"
elif ! command -v "${INPUT_BINARY:-conformant}" >/dev/null; then
  cargo install --locked --root "$HOME" --path "$(dirname "$0")/../.."
  echo "$HOME/bin" >>"${GITHUB_PATH:-/dev/null}"
fi
