//! The build of a CI system around this process, from the variables that the system sets.

use super::config::environment;
use conformant_record::Build;

/// Variables with the page of the build. Others take several variables.
const PAGES: &str = "CI_JOB_URL BUILDKITE_BUILD_URL CIRCLE_BUILD_URL BUILD_URL CI_PIPELINE_URL";
/// Variables with the revision.
const REVISIONS: &str = "GITHUB_SHA CI_COMMIT_SHA BUILDKITE_COMMIT CIRCLE_SHA1 GIT_COMMIT BUILD_SOURCEVERSION \
     BITBUCKET_COMMIT";

/// The build; none where no variable is set.
pub(super) fn of_environment() -> Option<Build> {
    of(&|name| environment(name).filter(|value| !value.is_empty()))
}

fn of(set: &dyn Fn(&str) -> Option<String>) -> Option<Build> {
    let github = || {
        let (server, repository) = (set("GITHUB_SERVER_URL")?, set("GITHUB_REPOSITORY")?);
        let run = set("GITHUB_RUN_ID")?;
        Some(format!("{server}/{repository}/actions/runs/{run}"))
    };
    let azure = || {
        let (collection, project) = (set("SYSTEM_COLLECTIONURI")?, set("SYSTEM_TEAMPROJECT")?);
        let build = set("BUILD_BUILDID")?;
        Some(format!(
            "{collection}{project}/_build/results?buildId={build}"
        ))
    };
    let first = |names: &str| names.split(' ').find_map(set);
    let url = github().or_else(azure).or_else(|| first(PAGES));
    let build = Build {
        url: url.unwrap_or_default(),
        revision: first(REVISIONS).unwrap_or_default(),
    };
    (build != Build::default()).then_some(build)
}

#[cfg(test)]
mod tests {
    #[test]
    fn page_and_revision_come_from_the_variables_of_the_system() {
        let of = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                let hit = variables.iter().find(|(known, _)| *known == name)?;
                Some(hit.1.to_owned())
            };
            super::of(&value).map(|build| (build.url, build.revision))
        };
        let pair = |url: &str, revision: &str| Some((url.to_owned(), revision.to_owned()));
        assert_eq!(of(&[]), None);
        assert_eq!(
            of(&[
                ("GITHUB_SERVER_URL", "https://h"),
                ("GITHUB_REPOSITORY", "a/b"),
                ("GITHUB_RUN_ID", "7"),
                ("GITHUB_SHA", "c0ffee"),
            ]),
            pair("https://h/a/b/actions/runs/7", "c0ffee")
        );
        assert_eq!(
            of(&[("CI_JOB_URL", "https://h/1"), ("CI_COMMIT_SHA", "c0ffee")]),
            pair("https://h/1", "c0ffee")
        );
        assert_eq!(of(&[("GIT_COMMIT", "c0ffee")]), pair("", "c0ffee"));
    }
}
