//! Every document becomes a folder that loads as it is.

use conformant_judge::load;
use conformant_openapi::{Imported, import};
use conformant_rulebook::Rulebook;
use conformant_rulebook::paging::NextPage;

fn made(name: &str) -> (Imported, Rulebook) {
    let path = format!("{}/tests/documents/{name}", env!("CARGO_MANIFEST_DIR"));
    made_of(name, &std::fs::read_to_string(path).expect("it is there"))
}

fn made_of(name: &str, text: &str) -> (Imported, Rulebook) {
    let made = import(name, text).expect("it is an OpenAPI document");
    let dir = tempfile::tempdir().expect("the temporary folder is writable");
    for (path, text) in &made.files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in a folder"))
            .expect("the temporary folder is writable");
        std::fs::write(path, text).expect("the temporary folder is writable");
    }
    let rulebook = load::from_dir(dir.path()).unwrap_or_else(|problems| {
        let texts: Vec<String> = problems
            .iter()
            .map(|p| format!("{}:{}: {p}", p.file, p.line))
            .collect();
        panic!("{name}: {}", texts.join("\n"))
    });
    (made, rulebook)
}

fn paging(rulebook: &Rulebook, service: &str, operation: &str) -> NextPage {
    rulebook
        .operation(service, operation)
        .expect("the folder has it")
        .paging
        .next
        .clone()
}

#[test]
fn a_list_that_is_an_array_is_read_by_offset() {
    let (made, rulebook) = made("pets.yaml");
    assert!(made.problems.is_empty(), "{:?}", made.problems);
    let list = rulebook.operation("petshop", "list-pets").unwrap();
    assert_eq!(list.items_at().as_deref(), Some(""));
    assert_eq!(
        paging(&rulebook, "petshop", "list-pets"),
        NextPage::Offset("offset".into())
    );
    let rules = &rulebook.rules;
    for id in [
        "pet/name",
        "error/code",
        "add-pet/write-persists",
        "delete-pet/deleted-is-absent",
        "get-pet/pet-id",
    ] {
        assert!(rules.contains_key(&format!("petshop/{id}")), "{id}");
    }
    assert!(
        !rules.contains_key("petshop/replace-pet/other-fields-unchanged"),
        "PUT replaces"
    );
    let tag = rulebook.kinds["petshop/pet"]
        .schema
        .pointer("/properties/tag/type")
        .unwrap();
    assert_eq!(*tag, serde_json::json!(["string", "null"]));
}

#[test]
fn children_belong_to_the_parent_of_their_path() {
    let (_, rulebook) = made("shop.yaml");
    let order = &rulebook.kinds["shop/order"].annotations;
    assert_eq!(
        order.parents,
        [("/customer_id".to_owned(), "shop/customer".to_owned())]
    );
    let token = NextPage::Token("/next_cursor".into(), "cursor".into());
    assert_eq!(paging(&rulebook, "shop", "list-orders"), token);
    assert!(rulebook.rules.contains_key("shop/get-order/parent-scope"));
    let cancel = rulebook.operation("shop", "cancel-order").unwrap();
    assert_eq!(cancel.resource.as_deref(), Some("shop/order"));
    assert!(cancel.secured);
}

#[test]
fn a_field_that_ends_with_sid_refers_to_the_parent() {
    let path = format!("{}/tests/documents/shop.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("it is there");
    let text = text
        .replace("[id, customer_id,", "[id, customer_sid,")
        .replace(
            "        customer_id: { type",
            "        customer_sid: { type",
        );
    let (_, rulebook) = made_of("shop.yaml", &text);
    assert_eq!(
        rulebook.kinds["shop/order"].annotations.parents,
        [("/customer_sid".to_owned(), "shop/customer".to_owned())]
    );
}

#[test]
fn json_with_page_numbers_and_parents_without_a_field_loads() {
    let (made, rulebook) = made("projects.json");
    assert_eq!(
        made.problems.len(),
        1,
        "the recursive schema: {:?}",
        made.problems
    );
    let task = &rulebook.kinds["projecttracker/task"].annotations;
    assert_eq!(
        task.parents,
        [("projectKey".to_owned(), "projecttracker/project".to_owned())]
    );
    let page = NextPage::Page("page".into(), 0);
    assert_eq!(paging(&rulebook, "projecttracker", "projects-list"), page);
    let link = NextPage::Link("/_links/next/href".into());
    assert_eq!(paging(&rulebook, "projecttracker", "tasks-list"), link);
    let update = rulebook
        .operation("projecttracker", "tasks-update")
        .unwrap();
    assert_eq!(update.bodies, ["application/merge-patch+json"]);
}

#[test]
fn requests_capture_only_what_later_ones_name() {
    let (made, rulebook) = made("store.yaml");
    assert!(made.problems.is_empty(), "{:?}", made.problems);
    let scenarios = &made
        .files
        .iter()
        .find(|(path, _)| path == "store/scenarios/item.yaml");
    let (_, scenarios) = scenarios.expect("items are created");
    // An update is by the identifier in its body, and the shelf of an item is optional.
    assert!(scenarios.contains("id: \"${item.id}\""), "{scenarios}");
    assert_eq!(scenarios.matches("list-shelves").count(), 1, "{scenarios}");
    assert!(!scenarios.contains("capture: other"), "{scenarios}");
    for id in ["page-size", "page-limit"] {
        assert!(
            rulebook
                .rules
                .contains_key(&format!("store/list-items/{id}")),
            "{id}"
        );
    }
}

#[test]
fn a_broken_document_brings_a_problem_for_each_place_and_the_rest_is_made() {
    let (made, rulebook) = made("broken.yaml");
    let lines: Vec<usize> = made.problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [1, 11, 11, 15, 17, 29, 35, 48, 49, 49, 50, 51, 52]);
    assert_eq!(made.left_out.len(), 5, "{:?}", made.left_out);
    assert_eq!(
        rulebook.services["broken"].operations.len(),
        made.operations
    );
}

#[test]
fn documents_of_other_versions_and_sizes_are_refused() {
    let refused = |text: &str| import("a.yaml", text).unwrap_err()[0].message.clone();
    assert!(refused("swagger: '2.0'\npaths: {}\n").contains("Swagger 2.0"));
    assert!(refused("openapi: 2.9.9\npaths: {}\n").contains("2.9.9"));
    assert!(refused("a: 1\n").contains("`openapi` is missing"));
    assert!(refused(&" ".repeat(conformant_openapi::BYTES_MAX + 1)).contains("bytes"));
}

#[test]
fn references_that_multiply_are_cut() {
    let mut text = "openapi: 3.0.0\ninfo: {title: Many, version: '1'}\nservers: [{url: /}]\npaths:\n  /a:\n    get:\n      responses: {'200': {description: ok, content: {application/json: {schema: {$ref: '#/components/schemas/S0'}}}}}\ncomponents:\n  schemas:\n".to_owned();
    for n in 0..18 {
        let next = n + 1;
        let properties: Vec<String> = (0..9)
            .map(|p| format!("p{p}: {{$ref: '#/components/schemas/S{next}'}}"))
            .collect();
        text.push_str(&format!(
            "    S{n}: {{type: object, properties: {{{}}}}}\n",
            properties.join(", ")
        ));
    }
    text.push_str("    S18: {type: string}\n");
    let made = import("many.yaml", &text).unwrap();
    assert!(made.files.iter().all(|(_, text)| text.len() < 2_000_000));
    assert!(
        made.problems.iter().any(|p| p.message.contains("left out")),
        "{:?}",
        made.problems
    );
}

#[test]
fn a_pattern_that_is_not_checked_has_its_reason() {
    let help = |pattern: &str| {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"id": {"type": "string"}, "name": {"type": "string", "pattern": pattern}},
        });
        let content = serde_json::json!({"application/json": {"schema": schema}});
        let answer = serde_json::json!({"200": {"description": "It.", "content": content}});
        let path = serde_json::json!({"get": {"operationId": "getThing", "responses": answer}});
        let document = serde_json::json!({
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": "https://example.com"}],
            "paths": {"/things": path},
        });
        let made = import("t.json", &document.to_string()).expect("it is an OpenAPI document");
        let is_of_pattern =
            |p: &&conformant_rulebook::Problem| p.to_string().contains("the pattern");
        let problem = made.problems.iter().find(is_of_pattern);
        problem.and_then(|problem| problem.help.clone())
    };
    assert_eq!(help("^a+$"), None);
    let large = "^([a-z]{1,500}|[0-9a-f]{1,700}){1,90}q.{300}$";
    for (pattern, why) in [
        ("^(?!a)", "look-around"),
        (large, "memory"),
        ("[", "unclosed"),
    ] {
        let help = help(pattern).expect("it has a reason");
        assert!(help.contains(why), "{pattern}: {help}");
    }
}
