//! The people that scenarios use, with the configured values in place of the defaults.

use super::error::ConfigError;
use super::file::PeopleEntry;
use super::reader::Reader;
use conformant_engine::settings::People;

impl Reader {
    /// `is_live`: the run has targets, of which only the configuration knows numbers that are new to them.
    pub(super) fn people(&mut self, entry: PeopleEntry, is_live: bool) -> People {
        let mut people = People::default();
        let unused = people.new_cellphone.take().filter(|_| !is_live);
        people.new_cellphone = entry.new_cellphone.or(unused);
        for (key, value, slot) in [
            ("country_code", entry.country_code, &mut people.country_code),
            (
                "other_country_code",
                entry.other_country_code,
                &mut people.other_country_code,
            ),
        ] {
            let Some(value) = value else { continue };
            if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
                let value = value.clone();
                self.problems.push(ConfigError::CallingCode { key, value });
            }
            *slot = value;
        }
        for (value, slot) in [
            (entry.cellphone, &mut people.cellphone),
            (entry.second_cellphone, &mut people.second_cellphone),
            (entry.third_cellphone, &mut people.third_cellphone),
            (entry.fourth_cellphone, &mut people.fourth_cellphone),
            (entry.fifth_cellphone, &mut people.fifth_cellphone),
            (entry.sixth_cellphone, &mut people.sixth_cellphone),
            (entry.email_domain, &mut people.email_domain),
        ] {
            if let Some(value) = value {
                *slot = value;
            }
        }
        people
    }
}
