//! The responses of an operation: one object, a list of objects, or nothing that a rule could be made of.

use crate::api::{component, contents, is_json, plain, properties, type_of, without_parameters};
use crate::document::{Document, Part};
use crate::paging::is_one_of;

/// Keys of arrays that hold the items of a list.
const LIST_KEYS: &str =
    "items data results content records values entries list elements rows objects hits";
/// Keys next to such an array.
const PAGE_KEYS: &str = "next previous prev cursor nextcursor nextpage nextpagetoken nexttoken total totalcount \
     count meta links paging pagination hasmore";

/// What an accepted request returns.
pub(crate) enum Answer<'d> {
    /// Nothing, or nothing that is described.
    Nothing,
    /// Something else than an object or a list of objects.
    Other,
    /// One object.
    One(Shape<'d>),
    /// A list of objects: the page, and the key of the array in it (empty: the page is the array).
    List {
        page: Part<'d>,
        key: String,
        items: Shape<'d>,
    },
}

/// An object schema, with the name of its component where it has one.
#[derive(Clone)]
pub(crate) struct Shape<'d> {
    pub(crate) part: Part<'d>,
    pub(crate) component: Option<String>,
    /// Where the resource is inside, such as `/data`.
    pub(crate) inside: String,
}

impl Shape<'_> {
    /// Whether both are the same component at the same place.
    pub(crate) fn is_same(&self, other: &Shape<'_>) -> bool {
        self.component.is_some() && self.component == other.component && self.inside == other.inside
    }
}

/// The schema of a JSON response.
fn json_schema<'d>(doc: &'d Document, response: &Part<'d>) -> Option<Part<'d>> {
    let response = doc.resolve(response)?;
    let is_any = |media: &str| without_parameters(media) == "*/*";
    let mut contents = contents(&response).into_iter();
    let (_, content) = contents.find(|(media, _)| is_json(media) || is_any(media))?;
    content.get("schema")
}

pub(crate) fn answer<'d>(doc: &'d Document, part: &Part<'d>, path: &str) -> (Answer<'d>, bool) {
    let responses = part.get("responses").into_iter();
    let responses = responses.flat_map(|r| r.members());
    let accepted = responses.filter(|(status, _)| status.starts_with('2'));
    let mut accepted: Vec<(&str, Part<'d>)> = accepted.collect();
    accepted.sort_by_key(|(status, _)| *status);
    let has_link = accepted.iter().any(|(_, response)| {
        let headers = doc.resolve(response).and_then(|r| r.get("headers"));
        let mut fields = headers.into_iter().flat_map(|h| h.members());
        fields.any(|(name, _)| name.eq_ignore_ascii_case("link"))
    });
    let mut responses = accepted.iter().map(|(_, response)| response);
    let schema = responses.clone().find_map(|one| json_schema(doc, one));
    let answer = match schema {
        Some(schema) => shaped(doc, &schema, path),
        None if responses
            .any(|one| doc.resolve(one).is_some_and(|r| r.get("content").is_some())) =>
        {
            Answer::Other
        }
        None => Answer::Nothing,
    };
    (answer, has_link)
}

fn shaped<'d>(doc: &'d Document, schema: &Part<'d>, path: &str) -> Answer<'d> {
    let Some(target) = doc.resolve(schema) else {
        return Answer::Other;
    };
    let shape = |part: &Part<'d>| Shape {
        part: part.clone(),
        component: component(part),
        inside: String::new(),
    };
    match type_of(doc, schema).as_deref() {
        Some("array") => {
            let items = target
                .get("items")
                .filter(|items| type_of(doc, items).as_deref() == Some("object"));
            match items {
                Some(items) => Answer::List {
                    page: target,
                    key: String::new(),
                    items: shape(&items),
                },
                None => Answer::Other,
            }
        }
        Some("object") => {
            let all = properties(doc, schema);
            if !path.ends_with('}')
                && let Some((key, items)) = list_in(doc, &all, path)
            {
                return Answer::List {
                    page: schema.clone(),
                    key,
                    items: shape(&items),
                };
            }
            // An envelope: one object inside, and no field that identifies the whole.
            let objects: Vec<_> = all
                .iter()
                .filter(|(_, part)| type_of(doc, part).as_deref() == Some("object"))
                .collect();
            let is_named =
                |name: &str| ["data", "result", "item", "response", "payload"].contains(&name);
            if let Some((name, inner)) = objects.iter().find(|(name, _)| is_named(name))
                && all
                    .iter()
                    .all(|(name, _)| !["id", "uuid"].contains(&plain(name).as_str()))
            {
                return Answer::One(Shape {
                    part: schema.clone(),
                    component: component(inner),
                    inside: format!("/{name}"),
                });
            }
            match all.is_empty() {
                true => Answer::Other,
                false => Answer::One(shape(schema)),
            }
        }
        _ => Answer::Other,
    }
}

/// The array of a page, by its name and by the keys next to it.
fn list_in<'d>(
    doc: &'d Document,
    all: &[(&'d str, Part<'d>)],
    path: &str,
) -> Option<(String, Part<'d>)> {
    let mut arrays = all.iter().filter_map(|(name, part)| {
        let target = doc.resolve(part)?;
        let items = target.get("items")?;
        let is_list = type_of(doc, part).as_deref() == Some("array")
            && type_of(doc, &items).as_deref() == Some("object");
        is_list.then_some((*name, items))
    });
    let (name, items) = arrays.next()?;
    if arrays.next().is_some() {
        return None;
    }
    let last = path
        .rsplit('/')
        .find(|segment| !segment.is_empty() && !segment.starts_with('{'));
    let is_of_path = last.is_some_and(|last| plain(last) == plain(name));
    let is_list = is_one_of(LIST_KEYS, name)
        || is_of_path
        || all.iter().any(|(key, _)| is_one_of(PAGE_KEYS, key));
    is_list.then(|| (name.to_owned(), items))
}

/// The body that the document describes for every rejection.
pub(crate) fn error<'d>(doc: &'d Document, part: &Part<'d>) -> Option<Shape<'d>> {
    let responses = part.get("responses")?;
    let response = responses.get("4XX").or_else(|| responses.get("default"))?;
    let schema = json_schema(doc, &response)?;
    let is_object =
        type_of(doc, &schema).as_deref() == Some("object") && !properties(doc, &schema).is_empty();
    is_object.then(|| Shape {
        component: component(&schema),
        part: schema,
        inside: String::new(),
    })
}
