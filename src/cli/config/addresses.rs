//! Addresses that flags name, `SERVICE=URL`; whether anything is there is not asked.

use crate::cli::Failure;
use conformant_rulebook::service::ServiceIndex;

/// What `SERVICE=URL` says: a base address by service; `all` stands for each below one address.
pub(in crate::cli) fn by_service(
    index: &ServiceIndex,
    flag: &str,
    value: &str,
) -> Result<Vec<(String, String)>, AddressError> {
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
    let url = url.trim_end_matches('/');
    if service == "all" {
        let each = index.iter().filter_map(|(service, file)| {
            let path = &file.base.as_ref()?.path;
            Some((service.to_owned(), format!("{url}{path}")))
        });
        return Ok(each.collect());
    }
    if index.is_target(service) {
        return Ok(vec![(service.to_owned(), url.to_owned())]);
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
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        Self::Usage(error.to_string())
    }
}
