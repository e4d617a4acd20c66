//! A repository's reservations, read from their text one after the other: of a thousand that do not concern
//! whoever asks, none is kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::reservations::written::{Unreadable, Written};

/// Hands on each reservation of a [`crate::reservations::ledger::Ledger`], and gives its repository. That each is one is left to the taker.
pub(super) fn each<'a>(bytes: &'a [u8], take: impl FnMut(Written<'a>)) -> Result<Cow<'a, str>, Unreadable> {
    // That it is text is seen at once, and not in each of its thousands of words.
    let mut json = serde_json::Deserializer::from_str(str::from_utf8(bytes)?);
    let repository = Whole(take).deserialize(&mut json)?;
    json.end()?;
    Ok(repository)
}

/// A whole ledger, whose reservations are taken.
struct Whole<T>(T);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Repository,
    Reservations,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a, T: FnMut(Written<'a>)> DeserializeSeed<'a> for Whole<T> {
    type Value = Cow<'a, str>;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<Cow<'a, str>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'a, T: FnMut(Written<'a>)> Visitor<'a> for Whole<T> {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reservations of a repository")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut map: M) -> Result<Cow<'a, str>, M::Error> {
        let (mut repository, mut reservations) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Repository if repository.is_some() => return Err(M::Error::duplicate_field("repository")),
                Field::Repository => repository = Some(map.next_value::<Name<'a>>()?.0),
                Field::Reservations if reservations.is_some() => {
                    return Err(M::Error::duplicate_field("reservations"));
                }
                Field::Reservations => reservations = Some(map.next_value_seed(Each(&mut self.0))?),
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let () = reservations.ok_or_else(|| M::Error::missing_field("reservations"))?;
        repository.ok_or_else(|| M::Error::missing_field("repository"))
    }
}

/// The reservations of a ledger.
struct Each<T>(T);

impl<'a, T: FnMut(Written<'a>)> DeserializeSeed<'a> for Each<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'a, T: FnMut(Written<'a>)> Visitor<'a> for Each<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of reservations")
    }

    fn visit_seq<S: SeqAccess<'a>>(mut self, mut all: S) -> Result<(), S::Error> {
        while let Some(one) = all.next_element()? {
            (self.0)(one);
        }
        Ok(())
    }
}
