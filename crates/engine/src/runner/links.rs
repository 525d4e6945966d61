//! Follows addresses that an answer contains.

use super::Runner;
use super::calls::{kept, outcome};
use crate::link::{Destination, destination, place_of_link, split_url};
use crate::session::SendFault;
use crate::settings::Target;
use crate::stop::Stop;
use crate::template::{TemplateError, place_in_answer};
use crate::{body, request};
use conformant_base::http::{Cause, Request, Response};
use conformant_judge::evidence::{
    Body, Exchange, Expectation, FILE_BYTES_MAX, Outcome, SkippedRule, Span,
};
use conformant_rulebook::Operation;
use conformant_rulebook::scenario::Credentials;
use conformant_rulebook::step::Get;
use serde_json::Value;
use std::collections::BTreeMap;

impl<'a> Runner<'a> {
    /// Follows the address that the step reads or, if that is an object, each address in it.
    pub(super) fn get_step(&mut self, step: &Get) -> Result<(), Stop> {
        let links = match self.scope.fill_text(&step.get) {
            Err(TemplateError::Missing(name)) if step.either => {
                let place = place_in_answer(&name);
                self.skip(step, &format!("no answer so far contains `{place}`"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
            Ok(Value::Object(links)) => links,
            Ok(url) => return self.get_link(step, &step.get, &url),
        };
        for (key, url) in links.iter().filter(|(_, url)| url.is_string()) {
            let read = format!("{}.{key}}}", step.get.trim_end_matches('}'));
            self.get_link(step, &read, url)?;
        }
        Ok(())
    }

    fn get_link(&mut self, step: &Get, read: &str, url: &Value) -> Result<(), Stop> {
        let url = url.as_str().unwrap_or_default().to_owned();
        let masked = self.scope.take_taint();
        if url.is_empty() && step.either {
            self.refused.extend(step.capture.clone());
            return Ok(());
        }
        let inconclusive = |why: String| match &masked {
            Some(rule) => Stop::Masked(rule.clone()),
            None => Stop::Inconclusive(why),
        };
        let settings = self.session.settings();
        let name = self.service.name.clone();
        let target = settings
            .targets
            .get(&name)
            .ok_or_else(|| Stop::NotApplicable(format!("service {name} is not targeted")))?;
        let (origin, _) = split_url(&target.url);
        let exchanges = &self.evidence.exchanges;
        let via = place_of_link(exchanges, &url, read, &self.captured_at);
        let shown_by = via.as_ref().map(|via| &exchanges[via.exchange]);
        let from = shown_by.map_or("/", |exchange| exchange.request.target.as_str());
        let destination =
            destination(target, &Destination::Home(from.to_owned()), &url).map_err(|why| {
                inconclusive(format!(
                    "{}: {why}",
                    conformant_base::text::excerpt(&url, 200)
                ))
            })?;
        let (base, found, request, credentials) = match &destination {
            Destination::Home(path) => {
                let mut request = Request::new("GET", path.as_str());
                request::authorize(target, step.credentials, &mut request)?;
                let found = self.recognize(origin, &request);
                (origin, found, request, step.credentials)
            }
            Destination::Content(origin, path) => {
                let request = Request::new("GET", path.as_str());
                (origin.as_str(), None, request, Credentials::None)
            }
        };
        let (service, operation, mut sent) = match &found {
            Some((operation, sent)) => (&operation.service, operation.id.clone(), sent.clone()),
            None => (&name, String::new(), BTreeMap::new()),
        };
        // A page of the same list: parameters that its address omits keep their values.
        if let Some(page) = shown_by.filter(|page| page.operation == operation) {
            for (name, value) in &page.sent {
                sent.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        let mut exchange = Exchange {
            step: self.step,
            service: service.clone(),
            operation,
            sent,
            credentials,
            base: base.to_owned(),
            shell: target.shell_of(credentials),
            expectation: (step.rejected.clone()).map_or(Expectation::Either, Expectation::Rejected),
            span: Span::at(self.session.now()),
            via,
            setup: self.setup,
            request,
            ..Exchange::default()
        };
        let answer = self.follow(&name, target, destination, &exchange.request);
        match answer.and_then(|response| self.within_budget(response)) {
            Ok(response) => {
                let (view, status) = (body::view(&response), response.status);
                exchange.outcome = match found {
                    Some((operation, _)) => outcome(Ok(response), operation, self.rulebook),
                    None => file_outcome(response),
                };
                let index = self.keep(exchange);
                // Access rules are the target's choice, and a 404 does not make the link broken.
                if step.either && matches!(status, 401 | 403) {
                    self.skip(step, &format!("answered {status}"));
                    return Ok(());
                }
                self.finish(
                    (step.capture.as_ref(), &step.expect),
                    view,
                    None,
                    Some(index),
                )
            }
            Err(fault) => {
                let why = fault.to_string();
                exchange.outcome = Outcome::Fault {
                    cause: fault.cause,
                    detail: fault.detail,
                    partial: fault.partial,
                };
                self.keep(exchange);
                Err(inconclusive(why))
            }
        }
    }

    /// Skips the statements about an answer that is missing.
    fn skip(&mut self, step: &Get, why: &str) {
        self.refused.extend(step.capture.clone());
        let missed = step.expect.iter();
        let missed = missed.map(|e| SkippedRule::because(&e.rule, why));
        self.evidence.missed.extend(missed);
    }

    /// The operation that a request to this origin belongs to, with its parameters.
    pub(super) fn recognize(
        &self,
        origin: &str,
        request: &Request,
    ) -> Option<(&'a Operation, BTreeMap<String, Value>)> {
        let targets = &self.session.settings().targets;
        let found = targets.iter().filter_map(|(service, target)| {
            let (home, prefix) = split_url(&target.url);
            let path = request.path().strip_prefix(prefix);
            let path = path.filter(|path| home == origin && path.starts_with('/'))?;
            let operations = self.rulebook.services.get(service)?.operations.values();
            let found = request::recognize(operations, request, path, &target.values)?;
            Some((prefix.len(), found))
        });
        found
            .max_by_key(|(prefix, _)| *prefix)
            .map(|(_, found)| found)
    }

    /// Gets the destination of a link through redirects. Credentials are sent only with the first request, as in a
    /// browser.
    pub(super) fn follow(
        &self,
        service: &str,
        target: &Target,
        mut at: Destination,
        request: &Request,
    ) -> Result<Response, SendFault> {
        const HOPS_MAX: usize = 5;
        let mut asked = request.clone();
        for _ in 0..HOPS_MAX {
            let response = match &at {
                Destination::Home(_) => self.session.send(service, &asked)?,
                Destination::Content(origin, _) => self.session.get_elsewhere(origin, &asked)?,
            };
            let is_redirect = (300..400).contains(&response.status);
            let Some(location) = response.headers.get("Location").filter(|_| is_redirect) else {
                return Ok(response);
            };
            at = destination(target, &at, location).map_err(|why| {
                let location = conformant_base::text::excerpt(location, 200);
                SendFault::new(Cause::Redirect, format!("{location}: {why}"))
            })?;
            let (Destination::Home(path) | Destination::Content(_, path)) = &at;
            asked = Request::new("GET", path.as_str());
        }
        let why = format!("{HOPS_MAX} redirects, and no end");
        Err(SendFault::new(Cause::Redirect, why))
    }
}

/// The outcome of a file download. It is compared with the upload as far as both are kept.
fn file_outcome(response: Response) -> Outcome {
    Outcome::Answered {
        response: match response.body.len() {
            0..=FILE_BYTES_MAX => response,
            _ => kept(response),
        },
        body: Body::Empty,
    }
}
