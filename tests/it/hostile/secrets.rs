//! Echoed credentials are in no output, in any encoding.

use crate::hostile::command::{TIMEOUT, conformant, run};
use crate::hostile::pages::{answer, ok, only_page};
use crate::hostile::target::{Act, Target};
use crate::program::Folder;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

const PASSWORD: &str = "hunter2&<\"p@ss/w0rd+é";
const TOKEN: &str = "t0ken-4711-plainly-secret";
const FORMATS: [&str; 7] = [
    "json", "junit", "html", "markdown", "sarif", "ctrf", "github",
];

fn percent(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|b| format!("%{b:02X}")).collect();
    bytes.concat()
}

/// Every encoding of an echoed secret.
fn spellings(secret: &str) -> Vec<String> {
    let mut spellings = vec![
        secret.to_owned(),
        conformant_base::http::percent_encode(secret),
        json!(secret).to_string(),
        percent(secret),
    ];
    for before in ["", "a", "ab"] {
        let text = format!("{before}{secret} and more");
        spellings.push(STANDARD.encode(&text));
        spellings.push(URL_SAFE_NO_PAD.encode(&text));
    }
    spellings.push(STANDARD.encode(format!("me:{secret}")));
    spellings
}

/// Forbidden text: the parts of the encodings that contain the secret only.
fn traces(secret: &str) -> Vec<String> {
    let mut traces = vec![
        secret.to_owned(),
        conformant_base::http::percent_encode(secret),
    ];
    for skip in 0..3_usize {
        // Complete groups of three bytes have an encoding of their own.
        let inner: Vec<u8> = secret.bytes().skip((3 - skip) % 3).collect();
        let whole = inner.len() / 3 * 3;
        traces.push(STANDARD.encode(&inner[..whole]));
        traces.push(URL_SAFE_NO_PAD.encode(&inner[..whole]));
    }
    traces
}

#[test]
fn echoed_credentials_are_in_no_output() {
    let mut all = spellings(PASSWORD);
    all.extend(spellings(TOKEN));
    let echoed = all.join(" ");
    let in_header: String = echoed.chars().filter(char::is_ascii).collect();
    let bodies = [
        // As an invalid value, a name, an error, and a body that is not JSON.
        {
            let mut page = only_page("http://127.0.0.1");
            page["flows"][0]["status"] = json!(echoed);
            page["flows"][0][&echoed] = json!(1);
            page["meta"]["next_page_url"] =
                json!(format!("http://elsewhere.invalid/{PASSWORD}?x={echoed}"));
            ok(page.to_string())
        },
        answer(
            &format!("500 {in_header}"),
            &format!("X-Echo: {in_header}\r\n"),
            format!("oops {echoed}"),
        ),
        answer(
            "200 OK",
            &format!("Content-Type: text/{in_header}\r\n"),
            format!("<html>{echoed}"),
        ),
        answer(
            "200 OK",
            &format!("Content-Encoding: {in_header}\r\n"),
            &echoed,
        ),
        format!("SMTP {echoed}").into_bytes(),
    ];
    for body in bodies {
        let target = Target::answering(move |_| vec![Act::Send(body.clone())]);
        let folder = Folder::with_limits();
        let config = format!(
            "targets:\n  flow:\n    url: {}/flow\n    username: me\n    password: ${{PASSWORD}}\n    \
             headers: {{ Authorization-Token: \"${{TOKEN}}\" }}\nlimits: {{timeout: {TIMEOUT}}}\n",
            target.origin()
        );
        folder.write("conformant.yaml", config);
        let mut command = conformant(&folder);
        command.env("PASSWORD", PASSWORD).env("TOKEN", TOKEN);
        command.args(["run", "--filter", "flow/read-flows/*"]);
        for format in FORMATS {
            command.args(["--report", &format!("{format}=report.{format}")]);
        }
        let ended = run(&mut command);
        assert!(ended.exit == Some(1) || ended.exit == Some(3), "{ended:?}");
        assert!(
            target
                .asked()
                .iter()
                .any(|a| a.header("Authorization-Token") == TOKEN)
        );
        let mut outputs = vec![("stdout", ended.stdout), ("stderr", ended.stderr)];
        for format in FORMATS {
            let path = folder.join(format!("report.{format}"));
            outputs.push((format, std::fs::read_to_string(path).expect("a report")));
        }
        for (name, output) in outputs {
            for trace in [traces(PASSWORD), traces(TOKEN)].concat() {
                assert!(!output.contains(&trace), "{name} holds {trace}:\n{output}");
            }
        }
    }
}
