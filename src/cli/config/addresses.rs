//! Addresses that flags name, `SERVICE=URL`; whether anything is there is not asked.

use crate::cli::Failure;
use conformant_rulebook::service::ServiceIndex;
use std::collections::BTreeMap;

/// The word for every service in `all=URL`.
const ALL: &str = "all";

/// What flags `SERVICE=URL` say together: a base address by service. `all` stands for each below one address that has
/// no flag of its own.
pub(in crate::cli) fn by_service(
    index: &ServiceIndex,
    flag: &str,
    values: &[String],
) -> Result<BTreeMap<String, String>, AddressError> {
    let mut of_all = BTreeMap::new();
    let mut own = BTreeMap::<String, String>::new();
    for value in values {
        let (service, url) = split(index, flag, value)?;
        let other = match service {
            ALL => {
                let each = index.iter().filter_map(|(service, file)| {
                    let path = &file.base.as_ref()?.path;
                    Some((service.to_owned(), format!("{url}{path}")))
                });
                of_all.extend(each);
                continue;
            }
            _ => own.insert(service.to_owned(), url.to_owned()),
        };
        if let Some(other) = other.filter(|other| *other != url) {
            return Err(AddressError::Twice {
                flag: flag.to_owned(),
                service: service.to_owned(),
                urls: format!("{other} and {url}"),
            });
        }
    }
    of_all.extend(own);
    Ok(of_all)
}

/// The service, or `all`, and the address.
fn split<'a>(
    index: &ServiceIndex,
    flag: &str,
    value: &'a str,
) -> Result<(&'a str, &'a str), AddressError> {
    // A variable that is not set leaves the address empty.
    let parts = value.split_once('=');
    let Some((service, url)) =
        parts.filter(|(service, url)| !service.is_empty() && !url.is_empty())
    else {
        return Err(AddressError::Form {
            flag: flag.to_owned(),
            value: value.to_owned(),
        });
    };
    if service == ALL || index.is_target(service) {
        return Ok((service, url.trim_end_matches('/')));
    }
    Err(AddressError::Service {
        flag: flag.to_owned(),
        value: value.to_owned(),
        service: service.to_owned(),
        known: index.targets().join(", "),
    })
}

/// Why a flag names no address of a service.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum AddressError {
    #[error("{flag} {value}: write SERVICE=URL, such as flow=http://127.0.0.1:4010/flow")]
    Form { flag: String, value: String },
    #[error("{flag} {value}: no service is named {service}; known are {known}, all")]
    Service {
        flag: String,
        value: String,
        service: String,
        known: String,
    },
    #[error("{flag}: {service} has two addresses, {urls}; give one")]
    Twice {
        flag: String,
        service: String,
        urls: String,
    },
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self::Usage(error.to_string())
    }
}
