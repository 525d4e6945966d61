//! Tests of `openapi`.

use conformant_openapi::Surface;
use conformant_versions::{Class, openapi};

const OLD: &str = r##"
openapi: 3.0.3
info: { title: Orders API, version: "1" }
servers: [{ url: "https://orders.example" }]
paths:
  /orders/{id}:
    get:
      operationId: getOrder
      parameters:
        - { name: id, in: path, required: true, schema: { type: string } }
        - { name: verbose, in: query, schema: { type: boolean } }
      responses:
        "200":
          content:
            application/json: { schema: { $ref: "#/components/schemas/Order" } }
        "404": { description: None }
  /orders:
    post:
      operationId: createOrder
      requestBody:
        content:
          application/json:
            schema: { type: object, properties: { sku: { type: string, maxLength: 10 } } }
      responses: { "201": { description: Created } }
    delete:
      responses: { "204": { description: Gone } }
components:
  schemas:
    Order:
      type: object
      required: [id]
      properties:
        id: { type: string }
        state: { type: string, enum: [open, closed], nullable: true }
        parent: { $ref: "#/components/schemas/Order" }
"##;

fn read(text: &str) -> Surface {
    conformant_openapi::surface("api.yaml", text).expect("a document")
}

fn changes(edits: &[(&str, &str)]) -> Vec<(String, Vec<Class>, usize)> {
    let mut text = OLD.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let comparison = openapi(("old", &read(OLD)), ("new", &read(&text)));
    let changes = comparison.changes.into_iter();
    changes
        .map(|change| (change.id, change.class, change.witnesses.len()))
        .collect()
}

/// Old text, new text, id of a change, classes, number of witnesses.
const EDITS: &str = r"
[open, closed] | [open, closed, lost] | get-order/200/state/lost/enum-value-added | consumers | 1
required: [id] | required: [id, state] | get-order/200/state/required-added | producers | 1
maxLength: 10 | maxLength: 5 | create-order/body/sku/max-length/bound-narrowed | consumers producers | 1
maxLength: 10 | maxLength: 15 | create-order/body/sku/max-length/bound-widened | producers | 1
requestBody: | requestBody:\n        required: true | create-order/body/required-added | consumers producers | 0
in: query, schema | in: query, required: true, schema | get-order/verbose/required-added | consumers producers | 0
name: verbose, in: query | name: verbose, in: header | get-order/verbose/parameter-removed | consumers | 0
    delete: |     put: | delete-orders/operation-removed | consumers | 0
    delete: |     put: | put-orders/operation-added | additive | 0
'404' | '410' | get-order/404/answer-removed | consumers | 0
/orders/{id}: | /order/{id}: | get-order/address-changed | consumers producers | 0
createOrder | createOrder\n      security: [{ key: [] }] | create-order/credentials-added | consumers producers | 0
";

#[test]
fn each_edit_of_a_document_has_its_class() {
    for row in EDITS.lines().filter(|row| !row.is_empty()) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [from, to, id, classes, witnesses] = columns[..] else {
            panic!("{row}: expected five columns")
        };
        let [from, to] = [from, to].map(|text| text.replace(r"\n", "\n").replace('\'', "\""));
        let found = changes(&[(&from, &to)]);
        let id = format!("orders/{id}");
        let one = found.iter().find(|(found, _, _)| *found == id);
        let one = one.unwrap_or_else(|| panic!("{id} is not among {found:?}"));
        let words = one
            .1
            .iter()
            .map(|class| class.words().rsplit(' ').next().unwrap());
        let words: Vec<&str> = words.collect();
        assert_eq!(
            (words.join(" "), one.2.to_string()),
            (classes.into(), witnesses.into()),
            "{id}"
        );
    }
}

#[test]
fn another_spelling_of_a_document_changes_nothing() {
    for edits in [
        &[
            ("/orders/{id}", "/orders/{orderId}"),
            ("name: id,", "name: orderId,"),
        ][..],
        &[("operationId: getOrder", "operationId: get-order")],
    ] {
        assert_eq!(changes(edits), []);
    }
}

#[test]
fn what_is_twice_or_not_compared_is_a_problem() {
    for (from, to, problem) in [
        (
            "createOrder",
            "getOrder",
            "two operations have the id `getOrder`",
        ),
        (
            "  /orders:\n",
            "  /orders/{other}:\n    get: { responses: {} }\n  /orders:\n",
            "two operations have the address",
        ),
        (
            "id: { type: string }",
            "id: { type: array, contains: {}, minContains: 2 }",
            "`minContains` is not checked",
        ),
        (
            "id: { type: string }",
            "id: { maxLength: 4, allOf: [{ maxLength: 3 }] }",
            "`maxLength` is not checked: another schema of the same value has a different",
        ),
        (
            "id: { type: string }",
            "id: { oneOf: [{ minimum: 2 }, { maximum: 1 }], anyOf: [{ minimum: 3 }, { type: string }] }",
            "`anyOf` is not checked: another schema",
        ),
    ] {
        let text = OLD.replacen(from, to, 1);
        assert_ne!(text, OLD);
        let problems = read(&text).problems;
        let is_found = problems.iter().any(|p| p.message.contains(problem));
        assert!(is_found, "{to}: {problems:?}");
    }
}
