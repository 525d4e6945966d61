//! One server for the whole run, and an isolated sandbox for each test.

use serde_json::json;
use std::process::{Command, Stdio};
use std::{env, fs, sync::OnceLock, thread, time::Duration};

/// The address of a new sandbox.
pub struct World {
    pub base: String,
}

fn server() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| {
        let ready = tempfile::tempdir().unwrap().keep().join("ready");
        let program = env::var("CONFORMANT").unwrap_or_else(|_| "conformant".to_owned());
        let mut serve = Command::new(program);
        serve
            .args(["serve", "--port", "0", "--exit-with-parent", "--ready-file"])
            .arg(&ready);
        let mut process = serve
            .stdout(Stdio::null())
            .spawn()
            .expect("conformant is installed");
        for _ in 0..600 {
            if let Ok(address) = fs::read_to_string(&ready) {
                return address.trim().to_owned();
            }
            assert!(
                process.try_wait().unwrap().is_none(),
                "serve does not begin"
            );
            thread::sleep(Duration::from_millis(50));
        }
        panic!("serve does not begin")
    })
}

/// A fresh world.
pub fn world(name: &str) -> World {
    let world = World {
        base: format!("{}/_world/{name}", server()),
    };
    world.control("reset", json!({}));
    world
}

impl World {
    fn control(&self, what: &str, body: serde_json::Value) {
        ureq::post(format!("{}/_control/{what}", self.base))
            .send_json(body)
            .unwrap();
    }

    /// Says what calls get: `script("chat/create-service", "429:1", "1")`.
    pub fn script(&self, on: &str, answer: &str, calls: &str) {
        self.control(
            "script",
            json!({ "on": on, "answer": answer, "calls": calls }),
        );
    }
}
