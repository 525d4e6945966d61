//! What things operations are about, which shows only once all of a service's operations and all kinds are known.

use crate::model::{Does, Kind, Operation, Service};
use std::collections::BTreeMap;

/// Says of each operation what thing stands behind it: the one that it shows or lists, or, where it
/// answers with nothing, the one that is shown under the same address.
pub(crate) fn find_things(service: &mut Service, kinds: &BTreeMap<String, Kind>) {
    let shown = |operation: &Operation| -> Option<String> {
        let kind = kinds.get(operation.response.as_ref()?)?;
        let kind = match &kind.page_of {
            Some((item, _)) => kinds.get(item)?,
            None => kind,
        };
        kind.about.identity.is_some().then(|| kind.name.clone())
    };
    let by_path: BTreeMap<String, String> = service
        .operations
        .values()
        .filter(|operation| operation.does == Does::Shows)
        .filter_map(|operation| Some((operation.path.clone(), shown(operation)?)))
        .collect();
    for operation in service.operations.values_mut() {
        let at_path = || by_path.get(&operation.path).cloned();
        // `/orders/{id}/cancel` changes what `/orders/{id}` shows.
        let above = || {
            let is_action = operation.does == Does::Changes && !operation.path.ends_with('}');
            let (above, _) = operation.path.rsplit_once('/').filter(|_| is_action)?;
            by_path.get(above).cloned()
        };
        operation.thing = shown(operation).or_else(at_path).or_else(above);
    }
}
