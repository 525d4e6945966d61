//! Durations, sizes and rates as people write them.

use super::error::ConfigError;
use super::reader::Reader;
use conformant_base::size::{InvalidSize, Size};
use std::time::Duration;

impl Reader {
    pub(super) fn duration(
        &mut self,
        at: &'static str,
        text: Option<&str>,
        seconds: u64,
    ) -> Duration {
        let Some(text) = text else {
            return Duration::from_secs(seconds);
        };
        // A run of no time ends at once, as a test of what happens then.
        let is_possible = |time: &Duration| !time.is_zero() || at.starts_with("limits.run");
        let time = conformant_rulebook::duration(text).filter(is_possible);
        time.unwrap_or_else(|| {
            let text = text.to_owned();
            self.problems.push(ConfigError::Duration { at, text });
            Duration::from_secs(seconds)
        })
    }

    pub(super) fn bytes(&mut self, text: Option<&str>) -> usize {
        const DEFAULT: usize = 8 * 1024 * 1024;
        let Some(text) = text else { return DEFAULT };
        let read: Result<Size, InvalidSize> = text.parse();
        let read = read.and_then(|Size(bytes)| usize::try_from(bytes).map_err(|_| InvalidSize));
        read.unwrap_or_else(|source| {
            let text = text.to_owned();
            self.problems.push(ConfigError::Size { text, source });
            DEFAULT
        })
    }

    pub(super) fn rate(&mut self, text: Option<&str>) -> Option<u32> {
        let text = text?;
        let rate = text
            .strip_suffix("/s")
            .and_then(|n| n.trim().parse().ok())
            .filter(|n| *n > 0);
        if rate.is_none() {
            self.problems.push(ConfigError::Rate {
                text: text.to_owned(),
            });
        }
        rate
    }
}
