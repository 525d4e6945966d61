//! A service that no document of ours knows: a folder with `service.yaml` is enough to judge it.

use crate::program::run;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

const SERVICE: &str = "\
title: Orders
document: { id: ORDERS, title: Orders API }
base: { path: /orders, probe: { call: fetch-order, with: { Sid: OR1 } } }
settings:
  first_order: { description: An order that is there. }
hooks:
  ship_order: { takes: [sid], effects: [{ does: changes, kind: orders/order, key: sid }] }
";
const OPENAPI: &str = "\
openapi: 3.1.0
info: { title: Orders, version: v1 }
paths:
  /v1/Orders/{Sid}:
    get:
      operationId: fetch-order
      summary: Fetches an order.
      x-source: { section: Endpoints, lines: [3] }
      parameters:
        - name: Sid
          in: path
          required: true
          description: The order.
          schema: { type: string, pattern: \"^OR[0-9]+$\" }
          x-source: { section: Endpoints, lines: [3] }
          x-echo: /sid
      responses:
        2XX:
          description: The order.
          content: { application/json: { schema: { $ref: schemas/order.yaml } } }
";
const SCHEMA: &str = "\
title: Order
description: An order.
x-source: { section: Order, lines: [5] }
type: object
required: [sid, status]
properties:
  sid:
    type: string
    pattern: \"^OR[0-9]+$\"
    description: Names it.
    x-source: { section: Order, lines: [6] }
  status:
    enum: [open, shipped]
    description: Its state.
    x-source: { section: Order, lines: [7] }
";
const SCENARIOS: &str = "\
operations:
  fetch-order:
    with: { Sid: \"${target.orders.first_order}\" }
";

/// The rulebook of orders in a folder, and a configuration next to it.
fn orders(folder: &Path) {
    for (path, text) in [
        ("specs/orders/service.yaml", SERVICE),
        ("specs/orders/openapi.yaml", OPENAPI),
        ("specs/orders/schemas/order.yaml", SCHEMA),
        ("specs/orders/scenarios/orders.yaml", SCENARIOS),
    ] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the temporary folder is writable");
        std::fs::write(path, text).expect("the temporary folder is writable");
    }
}

/// Answers every request with an order of that status; the address.
fn serve(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, status));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, status: &str) {
    let mut lines = BufReader::new(stream.try_clone().expect("it is open")).lines();
    loop {
        let Some(Ok(first)) = lines.next() else {
            return;
        };
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let path = first.split(' ').nth(1).unwrap_or_default();
        let sid = path.rsplit('/').next().unwrap_or_default();
        let is_there = sid == "OR1";
        let body = match is_there {
            true => format!("{{\"sid\":\"{sid}\",\"status\":\"{status}\"}}"),
            false => "{}".to_owned(),
        };
        let code = if is_there { "200 OK" } else { "404 Not Found" };
        let head = format!("HTTP/1.1 {code}\r\nContent-Type: application/json\r\n");
        let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn judge(status: &'static str) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    orders(folder.path());
    let url = serve(status);
    let config = format!("targets: {{ orders: {{ url: \"{url}\", first_order: OR1 }} }}\n");
    std::fs::write(folder.path().join("conformant.yaml"), config)
        .expect("the temporary folder is writable");
    let target = format!("orders={url}");
    run(
        folder.path(),
        &["run", "--specs", "specs", "--target", &target],
    )
}

#[test]
fn a_service_of_a_folder_is_judged_live() {
    let (code, out, err) = judge("open");
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn a_defect_of_a_service_of_a_folder_is_found() {
    let (code, out, err) = judge("lost");
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("orders/order/status"), "{out}");
}

#[test]
fn a_service_without_a_reference_and_a_target_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    orders(folder.path());
    let (code, out, err) = run(folder.path(), &["run", "--specs", "specs"]);
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("--target orders=URL"), "{err}");
}

#[test]
fn a_setting_that_no_service_has_is_an_unknown_key() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    orders(folder.path());
    let config = "targets: { orders: { url: \"http://127.0.0.1:9\", first_ordr: OR1 } }\n";
    std::fs::write(folder.path().join("conformant.yaml"), config)
        .expect("the temporary folder is writable");
    let (code, _, err) = run(folder.path(), &["run", "--specs", "specs"]);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("first_ordr") && err.contains("first_order"),
        "{err}"
    );
}

#[test]
fn a_folder_without_a_service_file_is_refused() {
    let folder = tempfile::tempdir().expect("the temporary folder is writable");
    orders(folder.path());
    std::fs::remove_file(folder.path().join("specs/orders/service.yaml")).expect("it is there");
    let (code, _, err) = run(folder.path(), &["list", "rules", "--specs", "specs"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("it has no service.yaml"), "{err}");
}
