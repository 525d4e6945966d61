//! Rows in order of creation, by SID or name. Pages use their sequence numbers.

use crate::Refusal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of one kind within one scope. A copy shares them until one is changed.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    rows: BTreeMap<u64, Arc<T>>,
    by_sid: BTreeMap<String, u64>,
    by_name: BTreeMap<String, u64>,
    made: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            by_sid: BTreeMap::new(),
            by_name: BTreeMap::new(),
            made: 0,
        }
    }
}

impl<T: Clone> Table<T> {
    /// Appends a row; it takes over an existing name.
    pub(super) fn insert(&mut self, sid: String, name: Option<&str>, row: T) {
        self.made += 1;
        self.rows.insert(self.made, Arc::new(row));
        self.by_sid.insert(sid, self.made);
        if let Some(name) = name {
            self.by_name.insert(name.to_owned(), self.made);
        }
    }

    pub(super) fn by_sid(&self, sid: &str) -> Option<&T> {
        self.rows.get(self.by_sid.get(sid)?).map(Arc::as_ref)
    }

    pub(super) fn by_sid_mut(&mut self, sid: &str) -> Option<&mut T> {
        self.rows.get_mut(self.by_sid.get(sid)?).map(Arc::make_mut)
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&T> {
        self.rows.get(self.by_name.get(name)?).map(Arc::as_ref)
    }

    /// The row whose name differs in case only.
    pub(super) fn by_name_in_any_case(&self, name: &str) -> Option<&T> {
        let fits = |(known, _): &(&String, &u64)| known.eq_ignore_ascii_case(name);
        let (_, sequence) = self.by_name.iter().find(fits)?;
        self.rows.get(sequence).map(Arc::as_ref)
    }

    /// The row with that SID or, if `names`, that name.
    pub(super) fn find(&self, key: &str, names: bool) -> Result<&T, Refusal> {
        self.by_sid(key)
            .or_else(|| self.by_name(key).filter(|_| names))
            .ok_or_else(Refusal::not_found)
    }

    /// Removes and returns the row with that SID.
    pub(super) fn remove(&mut self, sid: &str) -> Option<T> {
        let sequence = self.by_sid.remove(sid)?;
        self.by_name.retain(|_, s| *s != sequence);
        self.rows.remove(&sequence).map(Arc::unwrap_or_clone)
    }

    /// Removes and returns all rows.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        let rows = std::mem::take(self).rows.into_values();
        rows.map(Arc::unwrap_or_clone)
    }

    /// Hides the row from everything except lists.
    pub(super) fn forget(&mut self, sid: &str) {
        if let Some(sequence) = self.by_sid.remove(sid) {
            self.by_name.retain(|_, s| *s != sequence);
        }
    }

    /// Removes every row that does not satisfy the condition.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rows.retain(|_, row| keep(row));
        let rows = &self.rows;
        self.by_sid
            .retain(|_, sequence| rows.contains_key(sequence));
        self.by_name
            .retain(|_, sequence| rows.contains_key(sequence));
    }

    /// Rows with their sequence numbers, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.rows
            .iter()
            .map(|(sequence, row)| (*sequence, row.as_ref()))
    }

    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.rows.values().map(Arc::as_ref)
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.values_mut().map(Arc::make_mut)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The newest row.
    pub(super) fn last(&self) -> Option<&T> {
        self.rows.values().next_back().map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_sid_and_name_until_removed() {
        let mut table = Table::default();
        table.insert("CH1".to_owned(), Some("lobby"), 1);
        table.insert("CH2".to_owned(), None, 2);
        assert_eq!(table.find("CH1", true), Ok(&1));
        assert_eq!(table.find("lobby", true), Ok(&1));
        assert!(table.find("lobby", false).is_err());
        assert_eq!(table.last(), Some(&2));
        assert_eq!(table.remove("CH1"), Some(1));
        assert!(table.find("lobby", true).is_err());
        assert_eq!(table.iter().collect::<Vec<_>>(), [(2, &2)]);
    }
}
