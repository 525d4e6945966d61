//! `run --dry-run`: prints the requests of each scenario as far as they are known.
//!
//! Sends nothing. A value from an earlier response is printed as `${name.field}`.

use conformant_engine::{Planned, Settings};
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::{Call, Step, Verb};
use conformant_rulebook::{Operation, ParameterLocation, Rulebook, Service};
use serde_json::{Map, Value};

/// Limit of nested groups; the rulebook check rejects cycles.
const DEPTH_MAX: usize = 16;

/// The requests of all planned scenarios.
pub(super) fn of(planned: &[Planned<'_>], rulebook: &Rulebook, settings: &Settings) -> String {
    let preview = Preview { rulebook, settings };
    let mut text = String::new();
    for planned in planned {
        text.push_str(&format!("{}\n", planned.scenario.id));
        preview.steps(planned.service, &planned.scenario.steps, "  ", &mut text, 0);
    }
    text
}

struct Preview<'a> {
    rulebook: &'a Rulebook,
    settings: &'a Settings,
}

impl Preview<'_> {
    fn steps(
        &self,
        service: &Service,
        steps: &[Step],
        indent: &str,
        text: &mut String,
        depth: usize,
    ) {
        for step in steps {
            let inner = format!("{indent}  ");
            if let Verb::Use(used) = &step.verb {
                let name = &used.r#use;
                text.push_str(&format!("{indent}use {name}{}\n", pairs(&used.with)));
                let group = self.rulebook.group(service, name);
                if let Some((owner, group)) = group.filter(|_| depth < DEPTH_MAX) {
                    self.steps(owner, &group.steps, &inner, text, depth + 1);
                }
                continue;
            }
            text.push_str(&format!("{indent}{}\n", self.step(service, step)));
            self.steps(service, step.nested(), &inner, text, depth);
        }
    }

    fn step(&self, service: &Service, step: &Step) -> String {
        if let Verb::Hook(asked) = &step.verb {
            return format!("hook {}{}", asked.hook, pairs(&asked.with));
        }
        let call = step.call().and_then(|call| {
            let operation = self.rulebook.called(&service.name, &call.call)?;
            Some(self.request(operation, call))
        });
        call.unwrap_or_else(|| step.summary())
    }

    fn request(&self, operation: &Operation, call: &Call) -> String {
        let target = self.settings.targets.get(&operation.service);
        let base = target.map_or_else(
            || format!("{{{}_url}}", operation.service),
            |t| t.url.clone(),
        );
        let configured = operation.path_from.as_ref().map(|key| {
            let value = target.and_then(|target| target.values.get(key)?.as_str());
            value.map_or_else(|| format!("/{{{key}}}"), str::to_owned)
        });
        let mut path = configured.unwrap_or_else(|| operation.path.clone());
        let mut rest = Map::new();
        for (name, value) in &call.with {
            let place = operation.parameters.iter().find(|p| p.name == *name);
            if place.is_some_and(|p| p.place == ParameterLocation::Path) {
                path = path.replace(&format!("{{{name}}}"), &shown(value));
            } else if !value.is_null() {
                rest.insert(name.clone(), value.clone());
            }
        }
        let credentials = if call.credentials == Credentials::Default {
            String::new()
        } else {
            format!("  (credentials: {:?})", call.credentials)
        };
        let walked = if call.walk {
            "  (and each next page)"
        } else {
            ""
        };
        format!(
            "{} {base}{path}{}{credentials}{walked}",
            operation.method,
            pairs(&rest)
        )
    }
}

fn pairs(with: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| format!("  {name}={}", shown(value));
    with.iter().map(pair).collect()
}

fn shown(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    conformant_base::text::escape_line(&conformant_base::text::excerpt(&text, 120)).to_string()
}
