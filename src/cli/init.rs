//! `init`: writes a configuration, stubs of the hooks and a CI file.
//!
//! Asks for missing addresses on a terminal, and sends one request without credentials to each.
//! Never overwrites a file.

use super::args::{Forge, InitArgs};
use super::{Done, Exit, Failure, as_json, config, note, print};
use conformant_base::http::Request;
use conformant_base::text::shell_quoted;
use conformant_engine::probe::is_page;
use conformant_engine::split_url;
use conformant_net::transport::{BaseUrl, Client, Limits};
use conformant_rulebook::hooks::Hook;
use conformant_rulebook::service::ServiceIndex;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value, context};
use std::io::{BufRead, IsTerminal};
use std::path::{Component, Path};

const CONFIGURATION: &str = include_str!("init/conformant.yaml.jinja");
const SHELL: &str = include_str!("init/hook.sh.jinja");
const PYTHON: &str = include_str!("init/hook.py.jinja");
const GITHUB: &str = include_str!("init/github.yml");
const GITLAB: &str = include_str!("init/gitlab.yml");
/// The pipeline of a project, and a file that it can include.
const GITLAB_WHOLE: &str = ".gitlab-ci.yml";
const GITLAB_PART: &str = ".gitlab/conformant.yml";

pub(super) fn init(args: &InitArgs) -> Done {
    if let Some((document, folder)) = args.from.as_ref().zip(args.dir.as_ref()) {
        return super::import::init_from(document, folder);
    }
    let index = super::services_of(args.specs.specs.as_deref())?;
    let targets = targets(&index, &args.targets)?;
    let services: Vec<_> = index
        .iter()
        .filter(|(_, file)| file.base.is_some())
        .map(|(service, file)| {
            let url = targets.iter().find(|(name, _)| name == service);
            let url = url.map(|(_, url)| url.clone());
            let probed = url.as_deref().map(probe);
            let settings = file.settings.iter().filter_map(|(key, setting)| {
                let example = setting.example.as_ref()?;
                let many = setting.many;
                Some(context! { key, example, many, says => setting.description.clone() })
            });
            let settings: Vec<_> = settings.collect();
            let header = file.credential_header();
            context! { name => service, upper => service.to_uppercase(), url, probed, settings, header }
        })
        .collect();
    let secrets = secrets(&index, &targets);
    let hooks: Vec<_> = hooks_for(&index, &targets)
        .into_iter()
        .map(described)
        .collect();
    let control = args.hooks.as_deref().map(|url| url.trim_end_matches('/'));
    let values = context! { services, hooks, control => control };
    let mut files = vec![
        ("conformant.yaml", rendered(CONFIGURATION, &values)?),
        // Editors use it for completion.
        ("conformant.schema.json", as_json(&config::schema(&index))?),
    ];
    if args.hooks.is_none() {
        files.push(("hooks/hook.sh", rendered(SHELL, &values)?));
        files.push(("hooks/hook.py", rendered(PYTHON, &values)?));
    }
    let of_ci = |template| ci_file(template, args, &secrets);
    let gitlab = gitlab_file(&args.out);
    match forge(args) {
        Forge::Github => files.push((".github/workflows/conformant.yml", of_ci(GITHUB))),
        Forge::Gitlab => files.push((gitlab, of_ci(GITLAB))),
        Forge::None => {}
    }
    let mut is_any_new = false;
    for (name, text) in files {
        is_any_new |= write(&args.out.join(name), &text)?;
    }
    if !is_any_new {
        return Err(Failure::Usage(
            "all files exist and were kept: move them away, or write to another folder with --out"
                .to_owned(),
        ));
    }
    if gitlab == GITLAB_PART && matches!(forge(args), Forge::Gitlab) {
        note(&format!(
            "{GITLAB_WHOLE} exists and is kept: add `include: [{{ local: {GITLAB_PART} }}]` to it"
        ));
    }
    let options = options(args);
    let is_below = args.out.components().any(|part| part != Component::CurDir);
    if is_below && !matches!(forge(args), Forge::None) {
        note(&format!(
            "the CI file works in the root of a repository only: if {} is not one, move it there and add `{}` to its `conformant run`",
            args.out.display(),
            options.trim()
        ));
    }
    let first = match targets.is_empty() {
        true => format!(
            "name a target in {}, ",
            args.out.join("conformant.yaml").display()
        ),
        false => String::new(),
    };
    note(&format!(
        "next: {first}check the targets with `conformant doctor{options}`, and see the requests with `conformant run{options} --dry-run`",
    ));
    Ok(Exit::Conformant)
}

/// The file for the job: the one of the pipeline, or one to include where the project has a pipeline of its own.
fn gitlab_file(out: &Path) -> &'static str {
    let pipeline = std::fs::read_to_string(out.join(GITLAB_WHOLE));
    match pipeline {
        Ok(text) if !text.contains("conformant run") => GITLAB_PART,
        Ok(_) | Err(_) => GITLAB_WHOLE,
    }
}

/// The options with which commands in the current folder find the configuration and the rulebook.
fn options(args: &InitArgs) -> String {
    let mut options = specs_option(args);
    let out = args.out.components().any(|part| part != Component::CurDir);
    if out {
        let path = args.out.join("conformant.yaml").display().to_string();
        options.push_str(&format!(" --config {}", shell_quoted(&path)));
    }
    options
}

fn specs_option(args: &InitArgs) -> String {
    let specs = args.specs.specs.as_ref();
    specs.map_or_else(String::new, |specs| {
        let specs = specs.display().to_string();
        format!(" --specs {}", shell_quoted(&specs))
    })
}

/// The variables with the credentials of the targets, as the configuration names them.
fn secrets(index: &ServiceIndex, targets: &[(String, String)]) -> Vec<String> {
    let named = targets.iter().filter_map(|(service, _)| {
        let upper = service.to_uppercase();
        let has_header = index.get(service)?.credential_header().is_some();
        Some(match has_header {
            true => vec![format!("{upper}_API_KEY")],
            false => vec![format!("{upper}_KEY"), format!("{upper}_SECRET")],
        })
    });
    named.flatten().collect()
}

/// A CI file with the rulebook and the secrets of this configuration.
fn ci_file(template: &str, args: &InitArgs, secrets: &[String]) -> String {
    let specs = specs_option(args);
    let passed = secrets
        .iter()
        .map(|name| format!("{name}: \"${{{{ secrets.{name} }}}}\""));
    let passed = passed.collect::<Vec<_>>().join(", ");
    template
        .replace("conformant run ", &format!("conformant run{specs} "))
        .replace("SECRETS", &passed)
}

/// Addresses by service, from the flags or the terminal.
fn targets(index: &ServiceIndex, flags: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut targets = Vec::from_iter(config::by_service(index, "--target", flags)?);
    let mut stdin = std::io::stdin().lock();
    if targets.is_empty() && std::io::stdin().is_terminal() {
        for service in index.targets() {
            print(&format!("base URL of {service} (leave empty to skip): "));
            let mut line = String::new();
            let read = stdin.read_line(&mut line);
            read.map_err(|e| Failure::Usage(format!("standard input: {e}")))?;
            if !line.trim().is_empty() {
                targets.push((service.to_owned(), line.trim().to_owned()));
            }
        }
    }
    for (service, url) in &targets {
        BaseUrl::parse(url).map_err(|e| {
            Failure::Usage(format!(
                "--target {service}={url}: {e}{}",
                config::scheme_for(url)
            ))
        })?;
    }
    Ok(targets)
}

/// How an address answers a request without credentials, for a comment.
fn probe(url: &str) -> String {
    let limits = Limits::default();
    let (origin, path) = split_url(url);
    let Ok(base) = BaseUrl::parse(origin) else {
        return "no address".to_owned();
    };
    let path = if path.is_empty() { "/" } else { path };
    match Client::new(limits).send(&base, &Request::new("GET", path), limits.timeout) {
        Ok(answer) if is_page(&answer) => format!(
            "answered {} with text/html in place of JSON: check the address",
            answer.status
        ),
        Ok(answer) => format!("answered {} without credentials", answer.status),
        Err(fault) => format!("did not answer: {fault}"),
    }
}

/// The hooks that scenarios of these targets can call; all without targets.
fn hooks_for<'a>(index: &'a ServiceIndex, targets: &[(String, String)]) -> Vec<&'a Hook> {
    let is_targeted =
        |service: &str| targets.is_empty() || targets.iter().any(|(target, _)| target == service);
    let feeds = index.feeds_of(is_targeted, |_| false);
    let is_needed = |hook: &&Hook| match index.service_of_hook(&hook.name) {
        Some(service) => is_targeted(&service) || feeds.contains(&service.as_str()),
        None => true,
    };
    index.hooks().filter(is_needed).collect()
}

fn described(hook: &Hook) -> Value {
    let names = hook.required.iter().chain(&hook.optional);
    let required = hook.required.iter().cloned();
    let optional = hook.optional.iter().map(|name| format!("{name}=None"));
    let parameters: Vec<String> = required.chain(optional).chain(["**_".to_owned()]).collect();
    context! {
        name => hook.name.clone(),
        arguments => names.clone().map(|name| Value::from(name.as_str())).collect::<Vec<_>>(),
        listed => names.map(String::as_str).collect::<Vec<_>>().join(", "),
        parameters => parameters.join(", "),
        more => hook.open,
    }
}

/// The selected CI system, or the one whose files exist.
fn forge(args: &InitArgs) -> Forge {
    args.ci.unwrap_or_else(|| {
        if args.out.join(".github").is_dir() {
            Forge::Github
        } else if args.out.join(GITLAB_WHOLE).is_file() {
            Forge::Gitlab
        } else {
            Forge::None
        }
    })
}

fn rendered(template: &str, values: &Value) -> Result<String, Failure> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .map_err(|e| Failure::Trouble(e.to_string()))?;
    environment.set_syntax(syntax);
    environment
        .render_str(template, values.clone())
        .map_err(|e| Failure::Trouble(e.to_string()))
}

/// Writes a file that does not exist yet and reports it; returns whether it is new.
fn write(path: &Path, text: &str) -> Result<bool, Failure> {
    let failed = |e: std::io::Error| Failure::Usage(format!("{}: {e}", path.display()));
    if path.exists() {
        note(&format!("{} exists and is kept", path.display()));
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)?;
    print(&format!("{}\n", path.display()));
    Ok(true)
}
