//! Services that no document of ours knows: the tutorial of the rulebook's guide, and the services of `tests/services`.

use crate::program::{Folder, Served, ended, root};
use crate::sessions;
use std::path::Path;
use std::process::{Command, Stdio};

const GUIDE: &str = "specs/README.md";
/// Ports of the tutorial's servers: as described, and with its defect.
const PORTS: [(&str, &[&str]); 2] = [("4020", &[]), ("4021", &["lossy"])];

/// Starts a server in Python that prints its address.
fn python_server(script: &Path, arguments: &[&str]) -> Served {
    let mut command = Command::new("python3");
    command.arg("-B").arg(script).args(arguments);
    Served::listen(command.stdin(Stdio::piped()))
}

/// A server of `tests/services`.
pub(crate) fn server_of(service: &str) -> Served {
    let services = root().join("tests/services");
    python_server(&services.join(service).join("server.py"), &[])
}

/// The server of the tutorial, on a free port in place of the one that it names.
pub(crate) fn tutorial_server(folder: &Path, arguments: &[&str]) -> Served {
    let text = std::fs::read_to_string(folder.join("orders.py")).expect("it is there");
    let script = folder.join("free-port.py");
    std::fs::write(&script, text.replace(PORTS[0].0, "0"))
        .expect("the temporary folder is writable");
    python_server(&script, arguments)
}

/// The files of the tutorial.
pub(crate) fn tutorial_files(folder: &Path) {
    let text = std::fs::read_to_string(root().join(GUIDE)).expect("it is there");
    write_files(text.split("\n## Files").next().unwrap_or_default(), folder);
}

/// The files that a page shows.
pub(crate) fn shown_files(page: &str, folder: &Path) {
    write_files(
        &std::fs::read_to_string(root().join(page)).expect("it is there"),
        folder,
    );
}

/// Writes the blocks of a page whose first line is a comment with a path. Blocks in a list are indented.
fn write_files(text: &str, folder: &Path) {
    for block in text.split("```").skip(1).step_by(2) {
        let (_, body) = block.split_once('\n').unwrap_or_default();
        let margin = body.len() - body.trim_start_matches(' ').len();
        let mut lines = body
            .lines()
            .map(|line| line.get(margin..).unwrap_or_default());
        let Some(path) = lines.next().and_then(|line| line.strip_prefix("# ")) else {
            continue;
        };
        if Path::new(path).extension().is_none() || path.contains(' ') {
            continue;
        }
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the temporary folder is writable");
        let rest: Vec<&str> = lines.collect();
        let rest = rest.join("\n");
        std::fs::write(path, format!("{}\n", rest.trim_end()))
            .expect("the temporary folder is writable");
    }
}

/// The rulebook of the tutorial in a folder.
fn orders() -> Folder {
    let folder = Folder::new();
    tutorial_files(&folder);
    folder
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    let folder = orders();
    let mut sessions = sessions::of(GUIDE);
    let with_server = sessions.split_off(1);
    std::fs::remove_file(folder.join("specs/orders/laws.yaml")).expect("it is there");
    for session in sessions {
        session.run(&folder);
    }
    assert_eq!(with_server.len(), PORTS.len());
    std::thread::scope(|scope| {
        for (session, (port, arguments)) in with_server.into_iter().zip(PORTS) {
            scope.spawn(move || {
                // Two runs cannot write the same report.
                let folder = orders();
                let server = tutorial_server(&folder, arguments);
                let shown = format!("http://127.0.0.1:{port}");
                session.with(&shown, &server.url).run(&folder);
            });
        }
    });
}

/// The commands that a red run prints read the rulebook of the run. A script asks for the credentials that the service
/// declares, and for no others.
#[test]
fn what_a_run_with_a_rulebook_of_its_own_prints_works_as_printed() {
    let folder = orders();
    let server = tutorial_server(&folder, &["lossy"]);
    let run = format!("run --specs specs --target orders={}", server.url);
    let (out, _) = folder.run(1, &format!("{run} --report json=run.json"));
    let next = out
        .lines()
        .find_map(|line| line.strip_prefix("next: conformant "));
    let next = next.expect("the next command is printed");
    assert!(next.ends_with(" --specs specs"), "{out}");
    folder.run(0, next);

    let reproduce = "conformant reproduce run.json 1";
    assert!(out.contains(reproduce), "{out}");
    let (script, _) = folder.run(0, "reproduce run.json 1");
    assert!(!script.contains("CONFORMANT_ORDERS"), "{script}");
    folder.write("again.sh", &script);
    let mut bash = Command::new("bash");
    bash.arg("again.sh").current_dir(&*folder);
    bash.env("CONFORMANT", env!("CARGO_BIN_EXE_conformant"));
    let (code, printed, err) = ended(&mut bash);
    assert_eq!(code, 1, "{printed}{err}");

    let file = folder.join("specs/orders/service.yaml");
    edit(&file, "base:", "auth: [basic, { header: X-Key }]\nbase:");
    let (script, _) = folder.run(0, "reproduce run.json 1");
    for name in ["USERNAME", "PASSWORD", "API_KEY"] {
        let name = format!("CONFORMANT_ORDERS_{name}");
        assert!(script.contains(&name), "{name}: {script}");
    }
    assert!(!script.contains("ACCOUNT_SID"), "{script}");
}

/// The two services and some of their defects; `.ci/campaigns services` tries all of them.
/// A service that reads a header field may accept its key together with a wrong user name.
#[test]
fn a_service_with_a_key_in_a_header_is_not_asked_about_user_names() {
    let document = |scheme: &str| {
        format!(
            r#"{{"openapi": "3.0.3", "info": {{"title": "Notes", "version": "1"}}, "security": [{{"key": []}}],
                "components": {{"securitySchemes": {{"key": {scheme}}}}},
                "paths": {{"/notes": {{"get": {{"operationId": "readNotes", "responses": {{"200": {{"description": "Notes"}}}}}}}}}}}}"#
        )
    };
    for (scheme, has_names) in [
        (
            r#"{"type": "apiKey", "in": "header", "name": "X-Key"}"#,
            false,
        ),
        (r#"{"type": "http", "scheme": "basic"}"#, true),
    ] {
        let folder = Folder::new();
        folder.write("notes.json", document(scheme));
        folder.run(0, "init --from notes.json rules");
        let (scenarios, _) = folder.run(0, "list scenarios --specs rules");
        assert!(
            scenarios.contains("read-notes/credentials-wrong"),
            "{scenarios}"
        );
        for of_names in ["credentials-near", "credentials-account"] {
            assert_eq!(scenarios.contains(of_names), has_names, "{scenarios}");
        }
    }
}

#[test]
fn services_of_other_documents_are_judged() {
    let mut runner = Command::new("python3");
    runner.arg("-B").arg(root().join("tests/services/run"));
    runner.arg(env!("CARGO_BIN_EXE_conformant"));
    runner.args(["--defects", "lost-update,patch-lost"]);
    let done = runner.output().expect("Python is there");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{printed}");
}

#[test]
fn a_service_without_a_reference_and_a_target_is_a_usage_error() {
    let folder = orders();
    let (_, err) = folder.run(2, "run --specs specs");
    assert!(err.contains("--target orders=URL"), "{err}");
}

#[test]
fn what_needs_the_reference_is_a_usage_error_without_it() {
    let folder = orders();
    for line in [
        "selftest",
        "fixtures generate --world --out world",
        "fixtures export --format hurl out",
        "fixtures export --format har out",
    ] {
        let (_, err) = folder.run(2, &format!("{line} --specs specs"));
        assert!(err.contains("does not implement orders"), "{err}");
    }
}

#[test]
fn a_setting_that_no_service_has_is_an_unknown_key() {
    let folder = orders();
    let config = "targets: { orders: { url: \"http://127.0.0.1:9\", usernam: a } }\n";
    folder.write("conformant.yaml", config);
    let (_, err) = folder.run(2, "run --specs specs");
    assert!(err.contains("usernam") && err.contains("username"), "{err}");
}

/// Loads the tutorial's rulebook after a change, which must not load.
fn refused(change: impl Fn(&Path)) -> String {
    let folder = orders();
    change(&folder.join("specs"));
    let (_, err) = folder.run(2, "list rules --specs specs");
    err
}

/// Replaces a text of a file.
fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).expect("it is there");
    assert!(text.contains(from), "{from} is not in {}", file.display());
    std::fs::write(file, text.replace(from, to)).expect("the temporary folder is writable");
}

/// A second service with the same files.
fn twice(specs: &Path, name: &str) {
    std::fs::create_dir(specs.join(name)).expect("the temporary folder is writable");
    let file = specs.join(name).join("service.yaml");
    std::fs::copy(specs.join("orders/service.yaml"), &file).expect("it is there");
    let base = "base: { path: /orders, probe: { call: fetch-order, with: { id: or_0 } } }\n";
    edit(&file, base, "hooks: { ship_order: {} }\n");
    let hook = format!("{base}hooks: {{ ship_order: {{}} }}\n");
    edit(&specs.join("orders/service.yaml"), base, &hook);
}

#[test]
fn a_folder_without_a_service_file_is_refused() {
    let err = refused(|specs| {
        std::fs::remove_file(specs.join("orders/service.yaml")).expect("it is there");
    });
    assert!(err.contains("it has no service.yaml"), "{err}");
    assert!(err.contains("write orders/service.yaml"), "{err}");
}

#[test]
fn a_hook_of_two_services_is_refused() {
    let err = refused(|specs| twice(specs, "shipping"));
    assert!(
        err.contains("orders already has a hook `ship_order`"),
        "{err}"
    );
    assert!(err.contains("shipping/service.yaml:3"), "{err}");
    assert!(err.contains("rename one of the two"), "{err}");
}

#[test]
fn names_that_mean_something_else_are_refused() {
    for name in ["all", "Orders2", "reference"] {
        let err = refused(|specs| twice(specs, name));
        assert!(
            err.contains(&format!("invalid service name `{name}`")),
            "{err}"
        );
    }
}

#[test]
fn a_base_path_of_two_services_is_refused() {
    let err = refused(|specs| {
        std::fs::create_dir(specs.join("sales")).expect("the temporary folder is writable");
        let from = specs.join("orders/service.yaml");
        std::fs::copy(from, specs.join("sales/service.yaml")).expect("it is there");
    });
    assert!(err.contains("orders has the same base path"), "{err}");
}

#[test]
fn a_mover_that_is_no_operation_is_refused() {
    let err = refused(|specs| {
        let file = specs.join("orders/schemas/order.yaml");
        let by = "    x-derived: { because: It changes., by: [create-order] }\n    maximum: 99\n";
        edit(&file, "    maximum: 99\n", by);
    });
    assert!(
        err.contains("there is no operation or hook `create-order`"),
        "{err}"
    );
    assert!(err.contains("write `orders/create-order`"), "{err}");
}
