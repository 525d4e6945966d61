//! Users of the authentication service, their phones and apps.
//!
//! Registration without personal data enrolls a user without an e-mail address.

use super::answer::Failure;
use super::input::{body, given, text};
use crate::{Call, Core, Fault, Variant, hook};
use conformant_base::clock::Timestamp;
use rand::Rng as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// `auth_id` of the first user; the next ones count up.
const FIRST_AUTH_ID: u64 = 1001;

/// The identity of a device: exactly one phone per `auth_id` (D1, Limits).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Phone {
    pub(super) country_code: u32,
    /// Digits without separators.
    pub(super) digits: String,
    /// Distinguishes spellings under faults that do not normalize phones; else empty.
    mark: String,
}

#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) auth_id: u64,
    /// In order; empty after a registration without personal data.
    pub(super) emails: Vec<String>,
    pub(super) phone: Phone,
    pub(super) has_app: bool,
    /// 24 hexadecimal digits: `user_id` in approval requests.
    pub(super) record: String,
    pub(super) since: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    /// By `auth_id`, counted from [`FIRST_AUTH_ID`].
    list: Vec<User>,
    by_phone: BTreeMap<Phone, u64>,
    installed: BTreeSet<Phone>,
    /// Numbers that their users gave up.
    given_up: BTreeSet<Phone>,
    /// The last registered e-mail address.
    last_email: String,
}

impl Phone {
    /// True if a fault treats both as equal.
    fn is_mistaken(&self, core: &Core, other: &Self) -> bool {
        let (one, two) = (self.digits.as_str(), other.digits.as_str());
        let last = |text: &str| text.get(text.len().saturating_sub(7)..).map(str::to_owned);
        let is_other = one != two && self.country_code == other.country_code;
        is_other && one.len() > 7 && last(one) == last(two) && core.fails(Fault::AuthPhoneLastSeven)
            || is_other
                && one.len() > 9
                && one.get(..9) == two.get(..9)
                && core.fails(Fault::AuthPhoneFirstNine)
    }

    /// Parses a phone with dashes, periods, spaces or no separators (D1, Resources).
    pub(super) fn parse(core: &Core, cellphone: &str, country_code: &str) -> Option<Self> {
        const DIGITS: std::ops::RangeInclusive<usize> = 5..=14;
        let country_code: u32 = match country_code.parse() {
            Ok(number) => Some(number).filter(|c| (1..=999).contains(c)),
            Err(_) => core
                .fails(Fault::AuthCountryCodeLettersAccepted)
                .then_some(1),
        }?;
        let mut mark = String::new();
        for (fault, separator) in [
            (Fault::AuthDashesChangeUser, '-'),
            (Fault::AuthPeriodsChangeUser, '.'),
            (Fault::AuthSpacesChangeUser, ' '),
        ] {
            if core.fails(fault) && cellphone.contains(separator) {
                mark.push(separator);
            }
        }
        let digits: String = cellphone
            .chars()
            .filter(|c| !matches!(c, '-' | '.' | ' '))
            .collect();
        let is_long = digits.len() > 14 && core.fails(Fault::AuthCellphoneLong);
        let is_valid = digits.bytes().all(|b| b.is_ascii_digit())
            && (DIGITS.contains(&digits.len()) || is_long);
        if !is_valid && !core.fails(Fault::AuthBadCellphoneAccepted) {
            return None;
        }
        Some(Self {
            country_code: if core.fails(Fault::AuthCountryCodeIgnored) {
                1
            } else if country_code > 99 && core.fails(Fault::AuthCountryCodeTwoDigits) {
                country_code / 10
            } else {
                country_code
            },
            digits,
            mark,
        })
    }
}

impl User {
    /// D1, Resources: the phone number in a user-status response is masked.
    fn masked_phone(&self, core: &Core) -> String {
        let digits = &self.phone.digits;
        // A fault accepts any text as digits.
        let last = |count: usize| {
            let start = digits.char_indices().rev().nth(count - 1);
            &digits[start.map_or(0, |(at, _)| at)..]
        };
        if core.varies(Variant::AuthOtherMask) {
            return format!("(***) ***-**{}", last(2));
        }
        format!("XXX-XXX-{}", last(4))
    }
}

impl Users {
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &User> {
        self.list.iter()
    }

    /// `POST …/users/new`.
    pub(super) fn create(&mut self, core: &mut Core, call: &Call<'_>) -> Result<Value, Failure> {
        let parameters = body(call)?;
        let nothing = Map::new();
        let user = given(&parameters, "user")
            .and_then(Value::as_object)
            .unwrap_or(&nothing);
        let (email, phone) = (read_email(core, user), read_phone(core, user));
        self.store_though_refused(core, user, email.is_ok(), phone.as_ref().ok());
        self.register_though_refused(core, user, phone.as_ref().ok());
        let (email, phone) = (email?, phone?);
        if self.given_up.contains(&phone) && core.varies(Variant::AuthOldNumberHeld) {
            return Err(Failure::invalid_user("cellphone", "60033"));
        }
        let auth_id = self.enrol(core, phone, Some(email));
        Ok(json!({
            "message": "User created successfully.",
            "user": {"id": auth_id},
            "success": true,
        }))
    }

    /// Fault: a user whose e-mail is refused is registered with it.
    fn register_though_refused(
        &mut self,
        core: &mut Core,
        user: &Map<String, Value>,
        phone: Option<&Phone>,
    ) {
        let email = given(user, "email").and_then(text);
        if let (Some(email), Some(phone)) = (email, phone)
            && !is_email(&email)
            && core.fails(Fault::AuthRefusedUserRegistered)
        {
            self.enrol(core, phone.clone(), Some(email));
        }
    }

    /// Faults: parts of a refused user reach users that exist.
    fn store_though_refused(
        &mut self,
        core: &Core,
        user: &Map<String, Value>,
        has_email: bool,
        phone: Option<&Phone>,
    ) {
        let Some(email) = given(user, "email").and_then(text) else {
            return;
        };
        if let Some(phone) = phone
            && !has_email
            && let Some(known) = self.list.iter_mut().find(|known| known.phone == *phone)
            && core.fails(Fault::AuthRefusedEmailShown)
        {
            known.emails.insert(0, email);
        } else if phone.is_none()
            && has_email
            && let Some(cellphone) = given(user, "cellphone").and_then(text)
            && let Some(digits) = Phone::parse(core, &cellphone, "1").map(|phone| phone.digits)
            && core.fails(Fault::AuthRefusedCountryEmail)
        {
            let known = self
                .list
                .iter_mut()
                .find(|known| known.phone.digits == digits);
            if let Some(known) = known {
                known.emails.insert(0, email);
            }
        } else if phone.is_none()
            && has_email
            && let Some(known) = self
                .list
                .iter_mut()
                .find(|known| known.emails.contains(&email))
            && core.fails(Fault::AuthRefusedPhoneShown)
        {
            "5550199".clone_into(&mut known.phone.digits);
        }
    }

    /// Finds or creates the user of that phone, and stores the e-mail.
    pub(super) fn enrol(&mut self, core: &mut Core, phone: Phone, email: Option<String>) -> u64 {
        let known = if core.fails(Fault::AuthOtherIdForSameDevice) {
            None
        } else if core.fails(Fault::AuthIdSharedByPhones) {
            self.list.first().map(|user| user.auth_id)
        } else {
            let mistaken = || self.list.iter().find(|u| u.phone.is_mistaken(core, &phone));
            let known = self.by_phone.get(&phone).copied();
            known.or_else(|| mistaken().map(|user| user.auth_id))
        };
        let known = known.filter(|auth_id| {
            let has_email = self.find(*auth_id).is_some_and(|u| !u.emails.is_empty());
            let is_new =
                has_email && email.is_none() && core.fails(Fault::AuthScannerOfKnownPhoneNew)
                    || !has_email && email.is_some() && core.fails(Fault::AuthScannerEmailNew);
            !is_new
        });
        let known = core.read_or_stale(Fault::AuthRacePhone, || known);
        if let Some(email) = &email {
            self.last_email.clone_from(email);
        }
        if let Some(user) = known.and_then(|auth_id| self.find_mut(auth_id)) {
            user.emails
                .extend(email.filter(|email| !user.emails.contains(email)));
            return user.auth_id;
        }
        let auth_id = FIRST_AUTH_ID + self.list.len() as u64;
        // D1, Create user: the phone number already in the user's app adds the application to it.
        let has_app =
            self.installed.contains(&phone) && !core.fails(Fault::AuthInstalledAppIgnored);
        self.by_phone.insert(phone.clone(), auth_id);
        self.list.push(User {
            auth_id,
            emails: email.into_iter().collect(),
            phone,
            has_app,
            record: record_id(core),
            since: core.now,
        });
        auth_id
    }

    /// Enrolls the user who scanned a QR code; without a phone, one with an unused number.
    pub(super) fn enrol_scanner(&mut self, core: &mut Core, phone: Option<Phone>) -> &User {
        let phone = phone.unwrap_or_else(|| self.unknown_phone());
        self.install_app(phone.clone());
        let auth_id = self.enrol(core, phone, None);
        self.find(auth_id).expect("an enrolled user is listed")
    }

    fn unknown_phone(&self) -> Phone {
        let taken = self.by_phone.len();
        (0..=taken)
            .map(|number| Phone {
                country_code: 1,
                digits: format!("555{number:07}"),
                mark: String::new(),
            })
            .find(|phone| !self.by_phone.contains_key(phone))
            .expect("more numbers are tried than are taken")
    }

    /// The person installs the app on a phone, known or not.
    pub(super) fn install_app(&mut self, phone: Phone) {
        let known = self.by_phone.get(&phone).copied();
        if let Some(user) = known.and_then(|auth_id| self.find_mut(auth_id)) {
            user.has_app = true;
        }
        self.installed.insert(phone);
    }

    /// The users whose app is on a phone: one at most.
    pub(super) fn with_app_on(&self, core: &Core, phone: &Phone) -> Vec<u64> {
        let is_elsewhere = core.fails(Fault::AuthAppShowsOtherCountry);
        let on_phone = self.list.iter().filter(|user| {
            user.phone == *phone || is_elsewhere && user.phone.digits == phone.digits
        });
        let is_installed = self.installed.contains(phone);
        let with_app = on_phone.filter(|user| user.has_app || is_elsewhere && is_installed);
        with_app.map(|user| user.auth_id).collect()
    }

    /// The person changes the number: still exactly one phone per `auth_id`.
    pub(super) fn change_phone(
        &mut self,
        core: &Core,
        auth_id: u64,
        phone: Phone,
    ) -> Result<(), String> {
        if self.by_phone.get(&phone).is_some_and(|id| *id != auth_id) {
            return Err("the number belongs to another user".to_owned());
        }
        let user = self
            .find_mut(auth_id)
            .ok_or_else(|| hook::unknown("user", "id", &auth_id.to_string()))?;
        if user.phone == phone {
            return Ok(());
        }
        let (has_app, old) = (
            user.has_app,
            std::mem::replace(&mut user.phone, phone.clone()),
        );
        if !core.fails(Fault::AuthOldPhoneResolves) {
            self.by_phone.remove(&old);
        }
        if !core.fails(Fault::AuthNewPhoneUnknown) {
            self.by_phone.insert(phone.clone(), auth_id);
        }
        self.given_up.remove(&phone);
        self.given_up.insert(old.clone());
        if has_app {
            self.installed.remove(&old);
            self.installed.insert(phone);
        }
        Ok(())
    }

    pub(super) fn find(&self, auth_id: u64) -> Option<&User> {
        self.list.get(position(auth_id)?)
    }

    fn find_mut(&mut self, auth_id: u64) -> Option<&mut User> {
        self.list.get_mut(position(auth_id)?)
    }

    /// `GET …/users/{AUTH_ID}/status`: a path of the reference, because the document shows none.
    /// `has_scan`: a person has registered by a scan.
    pub(super) fn status(
        &self,
        core: &Core,
        auth_id: &str,
        has_scan: bool,
    ) -> Result<Value, Failure> {
        let user = auth_id
            .parse()
            .ok()
            .and_then(|auth_id| self.find(auth_id))
            .filter(|user| !(user.emails.is_empty() && core.fails(Fault::AuthScannerWithoutStatus)))
            .ok_or_else(Failure::not_found)?;
        let shown = self
            .list
            .first()
            .filter(|first| first.auth_id != user.auth_id && core.fails(Fault::AuthStatusOfFirst));
        let shown = shown.unwrap_or(user);
        let phone_number = if core.fails(Fault::AuthPhoneUnmasked) {
            shown.phone.digits.clone()
        } else {
            shown.masked_phone(core)
        };
        let mut email = user.emails.first().map_or("", String::as_str);
        if email != self.last_email && core.fails(Fault::AuthStatusEmailOfLast) {
            email = &self.last_email;
        }
        if let [.., newest] = user.emails.as_slice()
            && user.emails.len() > 2
            && core.fails(Fault::AuthStatusEmailNewest)
        {
            email = newest;
        }
        let has_device = user.has_app || has_scan && core.fails(Fault::AuthDevicesAfterScan);
        let is_registered = user.has_app || has_scan && core.fails(Fault::AuthRegisteredAfterScan);
        Ok(json!({
            "message": "User status.",
            "status": {
                "auth_id": user.auth_id,
                "confirmed": user.has_app,
                "registered": is_registered,
                "country_code": shown.phone.country_code,
                "phone_number": phone_number,
                "email": email,
                "devices": if has_device { json!(["iphone"]) } else { json!([]) },
            },
            "success": true,
        }))
    }
}

fn position(auth_id: u64) -> Option<usize> {
    usize::try_from(auth_id.checked_sub(FIRST_AUTH_ID)?).ok()
}

/// 24 hexadecimal digits.
pub(super) fn record_id(core: &mut Core) -> String {
    format!("{:016x}{:08x}", core.rng.next_u64(), core.rng.next_u32())
}

fn read_email(core: &Core, user: &Map<String, Value>) -> Result<String, Failure> {
    let email = given(user, "email").and_then(text);
    if email.is_none()
        && user.get("email").is_some_and(|sent| *sent == "")
        && core.fails(Fault::AuthEmailEmpty)
    {
        return Ok(String::new());
    }
    let is_excused = core.fails(if email.is_some() {
        Fault::AuthBadEmailAccepted
    } else {
        Fault::AuthEmailNotRequired
    });
    match email {
        Some(email) if is_email(&email) && !is_mistrusted(core, &email) => Ok(email),
        Some(email)
            if email.matches('@').count() > 1 && core.fails(Fault::AuthEmailTwoAts)
                || email.contains(' ') && core.fails(Fault::AuthEmailBlank) =>
        {
            Ok(email)
        }
        email if is_excused => Ok(email.unwrap_or_default()),
        _ => Err(Failure::invalid_user("email", "60027")),
    }
}

fn read_phone(core: &Core, user: &Map<String, Value>) -> Result<Phone, Failure> {
    let invalid = |field| {
        if core.varies(Variant::AuthPhoneErrorAsEmail) {
            Failure::invalid_user("email", "60027")
        } else {
            Failure::invalid_user(field, "60033")
        }
    };
    let cellphone = match given(user, "cellphone").and_then(text) {
        None if core.fails(Fault::AuthCellphoneNotRequired) => "5550100".to_owned(),
        cellphone => cellphone.ok_or_else(|| invalid("cellphone"))?,
    };
    let country_code = match given(user, "country_code").and_then(text) {
        None if core.fails(Fault::AuthCountryCodeNotRequired) => "1".to_owned(),
        country_code => country_code.ok_or_else(|| invalid("country_code"))?,
    };
    Phone::parse(core, &cellphone, &country_code).ok_or_else(|| invalid("cellphone"))
}

/// True if a fault refuses a valid address.
fn is_mistrusted(core: &Core, email: &str) -> bool {
    let (local, domain) = email.split_once('@').unwrap_or_default();
    local.contains('+') && core.fails(Fault::AuthEmailPlusRefused)
        || email.contains(|c: char| c.is_ascii_uppercase())
            && core.fails(Fault::AuthEmailCapitalRefused)
        || domain.matches('.').count() > 1 && core.fails(Fault::AuthEmailSubdomainRefused)
}

/// One `@`, a non-empty local part, a dotted domain, no blanks.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    !local.is_empty()
        && domain.contains('.')
        && domain.split('.').all(|label| !label.is_empty())
        && !domain.contains('@')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}
