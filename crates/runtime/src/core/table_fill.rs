//! Fill level of the tables of remote participants and endpoints, and the host with most
//! entries. Logged once per full table, and for diagnostics (`pteros doctor`).

use pteros_rtps::participant::{Table, TableHolder};

use crate::transport::rtps::RtpsTransport;

/// Fill level of a table that remote hosts fill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableUse {
    /// Its entries: "participants" or "endpoints".
    pub entries: &'static str,
    /// The field of [`Limits`](pteros_dcps::limits::Limits) that sets its size.
    pub limit_field: &'static str,
    /// Number of entries now.
    pub held: usize,
    /// Largest number of entries.
    pub limit: usize,
    /// Host with the most entries: an address, or "this host".
    pub holder: String,
    /// Number of entries of that host.
    pub held_by_holder: usize,
}

impl RtpsTransport {
    /// Fill levels of the tables of remote participants and endpoints. Counts all
    /// entries: for diagnostics. Locks the participant.
    pub fn table_uses(&self) -> Vec<TableUse> {
        let fills = self.participant.lock().table_fills();
        let uses = fills.into_iter().map(|fill| {
            let (entries, limit_field) = limit_name(fill.table);
            TableUse {
                entries,
                limit_field,
                held: fill.held,
                limit: fill.limit,
                holder: holder_name(fill.holder),
                held_by_holder: fill.holder.held,
            }
        });
        uses.collect()
    }
}

/// The host with most entries of a table, as text.
fn holder_name(holder: TableHolder) -> String {
    match holder.address {
        Some(address) => address.to_string(),
        None if holder.is_this_host => "this host".into(),
        None => "an unknown address".into(),
    }
}

/// The name of the field of `Limits` that sets a table's size.
fn limit_name(table: Table) -> (&'static str, &'static str) {
    match table {
        Table::Participants => ("participants", "remote_participants"),
        Table::Endpoints => ("endpoints", "endpoints"),
        Table::Memory => ("bytes of records", "receive_memory_bytes"),
    }
}

/// Logs that a table is full.
pub(super) fn warn_about_full_table(table: Table, limit: usize, holder: TableHolder) {
    tracing::warn!("{}", full_table_line(table, limit, holder));
}

fn full_table_line(table: Table, limit: usize, holder: TableHolder) -> String {
    let (what, field) = limit_name(table);
    let (name, held) = (holder_name(holder), holder.held);
    if table == Table::Memory {
        return format!(
            "a record of a remote participant or endpoint is refused: its participant at {name} \
             fills {held} bytes here, and records take at most an eighth of {limit}. Stop what \
             floods the network, or raise limits.participant_memory_bytes and limits.{field}"
        );
    }
    format!(
        "the table of remote {what} is full: {held} of {limit} are from {name}; a newcomer is \
         refused or takes the place of the least useful one. Stop what floods the network, \
         or raise limits.{field}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_table_is_named() {
        let mut holder = TableHolder {
            address: Some([10, 0, 0, 7].into()),
            is_this_host: false,
            held: 3,
        };
        assert_eq!(holder_name(holder), "10.0.0.7");
        holder.address = None;
        holder.is_this_host = true;
        assert_eq!(holder_name(holder), "this host");
    }
    #[test]
    fn a_full_table_is_told_with_who_fills_it_and_the_limit_to_raise() {
        let mut holder = TableHolder {
            address: Some([10, 0, 0, 7].into()),
            is_this_host: false,
            held: 480,
        };
        let way_out = "a newcomer is refused or takes the place of the least useful one. Stop \
                       what floods the network, or raise limits";
        assert_eq!(
            full_table_line(Table::Participants, 512, holder),
            format!(
                "the table of remote participants is full: 480 of 512 are from 10.0.0.7; \
                 {way_out}.remote_participants"
            )
        );
        holder.address = None;
        assert_eq!(
            full_table_line(Table::Endpoints, 600, holder),
            format!(
                "the table of remote endpoints is full: 480 of 600 are from an unknown address; \
                 {way_out}.endpoints"
            )
        );
        holder.is_this_host = true;
        assert_eq!(
            full_table_line(Table::Memory, 1_000, holder),
            "a record of a remote participant or endpoint is refused: its participant at this \
             host fills 480 bytes here, and records take at most an eighth of 1000. Stop what \
             floods the network, or raise limits.participant_memory_bytes and \
             limits.receive_memory_bytes"
        );
    }
}
