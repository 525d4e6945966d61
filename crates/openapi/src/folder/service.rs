//! `service.yaml`: credentials, settings and the first request of a service.

use super::{Folder, document_id};
use crate::answers::Answer;
use crate::api::Operation;
use crate::schema::object;
use serde_json::{Map, Value, json};

impl Folder<'_, '_> {
    pub(super) fn service_file(&mut self) -> Option<Map<String, Value>> {
        let is_read = |o: &Operation<'_>| o.method == "get";
        let mut reads: Vec<(usize, &Operation<'_>)> =
            self.operations().filter(|(_, o)| is_read(o)).collect();
        reads.sort_by_key(|(n, o)| {
            let needs = self.happy[*n].as_ref().map_or(0, |happy| happy.with.len());
            (needs, !matches!(o.answer, Answer::List { .. }))
        });
        let (n, probe) = reads.first().copied()?;
        let mut call = Map::from_iter([("call".to_owned(), json!(probe.id))]);
        let with = self.happy[n].iter().flat_map(|happy| &happy.with);
        let with = with.map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let is_captured = text.contains("${");
            (
                name.clone(),
                Value::from(if is_captured { "0".to_owned() } else { text }),
            )
        });
        let with: Map<String, Value> = with.collect();
        if !with.is_empty() {
            call.insert("with".to_owned(), with.into());
        }
        let title = self.api.title.lines().next().unwrap_or_default();
        let mut file = object(json!({
            "title": title,
            "document": { "id": document_id(self.service), "title": title },
            "base": { "path": format!("/{}", self.service), "probe": call },
        }));
        if let Some((name, entry, _)) = &self.api.auth.scheme {
            // The key is the same word as the name of a service, which no literal may name.
            file.extend(object(json!({ (stringify!(auth)): [entry] })));
            let how = match entry.get("header").and_then(Value::as_str) {
                None => "username and password".to_owned(),
                Some(field) => format!("headers: {{ {field}: \"${{NAME}}\" }}"),
            };
            self.decide(
                "service",
                format!(
                    "credentials (`{name}`): write {how} under targets.{} of conformant.yaml",
                    self.service
                ),
            );
        }
        for unused in self.api.auth.unused.clone() {
            self.decide("service", unused);
        }
        if let Some(server) = self.api.servers.first() {
            self.decide(
                "service",
                format!(
                    "address: --target {}=URL is the address that paths follow, as in {server}",
                    self.service
                ),
            );
        }
        self.decide(
            "service",
            "hooks: what people, devices or other systems do to resources is not in the document"
                .to_owned(),
        );
        let settings = self.requests.settings.borrow().clone();
        if !settings.is_empty() {
            let entries = settings
                .iter()
                .map(|(name, says)| (name.clone(), json!({ "description": says })));
            file.insert("settings".to_owned(), entries.collect::<Map<_, _>>().into());
            let names: Vec<&str> = settings.keys().map(String::as_str).collect();
            self.decide(
                "service",
                format!("settings: no operation makes a value of {}; configure them, or write a hook that does", names.join(", ")),
            );
        }
        for what in self.left_out.clone() {
            self.decide("service", format!("left out: {what}"));
        }
        Some(file)
    }
}
