//! `schema`: prints the JSON Schema of a file format, generated from the types that read it.

use super::args::{SchemaArgs, SchemaName};
use super::{Done, Exit, as_json, config, print};
use conformant_fixtures::Manifest;
use conformant_record::RunRecord;
use conformant_record::claims::ClaimsFile;
use conformant_record::waivers::WaiverFile;
use conformant_report::RunLine;
use conformant_rulebook::service::{ServiceFile, ServiceIndex};
use conformant_rulebook::{open_points::OpenPointFile, scenario::ScenarioFile};
use conformant_versions::DeclaredFile;

pub(super) fn schema(args: &SchemaArgs) -> Done {
    let schema = match args.name {
        SchemaName::Scenario => schemars::schema_for!(ScenarioFile).to_value(),
        SchemaName::Rules => conformant_judge::rules_schema(),
        SchemaName::OpenPoints => schemars::schema_for!(OpenPointFile).to_value(),
        SchemaName::Claims => schemars::schema_for!(ClaimsFile).to_value(),
        SchemaName::Waivers => schemars::schema_for!(WaiverFile).to_value(),
        SchemaName::Declared => schemars::schema_for!(DeclaredFile).to_value(),
        SchemaName::Record => schemars::schema_for!(RunRecord).to_value(),
        SchemaName::Jsonl => schemars::schema_for!(RunLine).to_value(),
        SchemaName::Manifest => Manifest::schema(),
        SchemaName::Config => config::schema(ServiceIndex::embedded()),
        SchemaName::Service => schemars::schema_for!(ServiceFile).to_value(),
    };
    print(&as_json(&schema)?);
    Ok(Exit::Conformant)
}
