//! `XSpace`: what a profiler hands over.

use std::collections::HashMap;

use tfp_wire::Writer;

/// A statistic of an event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stat {
    /// A number.
    Int(i64),
    /// A number.
    Double(f64),
    /// A text.
    Text(String),
}

/// Something that took time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Name; events of one name are grouped by the viewer.
    pub name: String,
    /// Start in picoseconds after the line's start.
    pub offset_ps: i64,
    /// Duration in picoseconds.
    pub duration_ps: i64,
    /// Statistics by name.
    pub stats: Vec<(String, Stat)>,
}

/// A row of events, such as those of a thread or a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Number, unique in its plane.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Start in nanoseconds since the epoch.
    pub timestamp_ns: i64,
    /// The events.
    pub events: Vec<Event>,
}

/// What one device did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plane {
    /// Number.
    pub id: i64,
    /// Name, such as `/device:TFP:0`.
    pub name: String,
    /// The rows.
    pub lines: Vec<Line>,
}

/// The serialized `XSpace` with these planes.
#[must_use]
pub fn to_bytes(planes: &[Plane]) -> Vec<u8> {
    let mut w = Writer::new();
    for plane in planes {
        w.message(1, |w| write_plane(w, plane));
    }
    w.into_bytes()
}

/// Numbers for names, in the order of their first use, from 1.
#[derive(Default)]
struct Ids<'a> {
    names: Vec<&'a str>,
    ids: HashMap<&'a str, i64>,
}

impl<'a> Ids<'a> {
    #[allow(clippy::cast_possible_wrap)]
    fn id(&mut self, name: &'a str) -> i64 {
        let next = self.names.len() as i64 + 1;
        *self.ids.entry(name).or_insert_with(|| {
            self.names.push(name);
            next
        })
    }

    fn write(&self, w: &mut Writer, field: u32) {
        for (id, name) in (1..).zip(&self.names) {
            w.message(field, |w| {
                w.int(1, id);
                w.message(2, |w| {
                    w.int(1, id);
                    w.bytes(2, name.as_bytes());
                });
            });
        }
    }
}

fn write_plane(w: &mut Writer, plane: &Plane) {
    let mut events = Ids::default();
    let mut stats = Ids::default();
    w.int(1, plane.id);
    w.bytes(2, plane.name.as_bytes());
    for line in &plane.lines {
        w.message(3, |w| {
            w.int(1, line.id);
            w.bytes(2, line.name.as_bytes());
            w.int(3, line.timestamp_ns);
            for event in &line.events {
                w.message(4, |w| {
                    w.int(1, events.id(&event.name));
                    w.int(2, event.offset_ps);
                    w.int(3, event.duration_ps);
                    for (name, stat) in &event.stats {
                        w.message(4, |w| {
                            w.int(1, stats.id(name));
                            match stat {
                                Stat::Double(value) => w.double(2, *value),
                                Stat::Int(value) => w.int(4, *value),
                                Stat::Text(value) => w.bytes(5, value.as_bytes()),
                            }
                        });
                    }
                });
            }
        });
    }
    events.write(w, 4);
    stats.write(w, 5);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfp_wire::Reader;

    #[test]
    fn names_are_shared_by_events() {
        let event = |offset_ps| Event {
            name: "Relu".into(),
            offset_ps,
            duration_ps: 5,
            stats: vec![("bytes".into(), Stat::Int(8))],
        };
        let plane = Plane {
            id: 1,
            name: "/device:TFP:0".into(),
            lines: vec![Line {
                id: 3,
                name: "thread".into(),
                timestamp_ns: 9,
                events: vec![event(0), event(10)],
            }],
        };
        let bytes = to_bytes(&[plane]);
        let space: Vec<_> = Reader::new("XSpace", &bytes).map(Result::unwrap).collect();
        assert_eq!(space.len(), 1);
        let plane = Reader::new("XPlane", space[0].1.bytes().unwrap());
        let numbers: Vec<_> = plane.map(|field| field.unwrap().0).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
    }
}
