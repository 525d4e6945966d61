//! Faults: deliberate defects of the reference, one per way to break a statement.
//!
//! A fault is a switch and nothing more: the broken behaviour stands where the right one does, as
//! `if core.fails(Fault::…)`. What each one must be caught by is recorded in the kill matrix.

macro_rules! switches {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $id:literal: $says:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $says] $variant,)*
        }

        impl $name {
            /// Every one, in the order they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line and in reports.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// What it does, in one sentence.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$variant => $says,)* }
            }

            /// The one with that name.
            pub fn from_id(id: &str) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(super) use switches;

switches! {
    /// A deliberate defect; its id begins with the service it is in.
    Fault {
        // flow
        FlowExecutionStartsEnded = "flow/execution-starts-ended": "A created execution never becomes active: it is ended from the start.",
        // chat
        // media
        // auth
        AuthEmailNotRequired = "auth/email-not-required": "A user is created without an e-mail.",
        AuthCellphoneNotRequired = "auth/cellphone-not-required": "A user is created without a phone.",
        AuthCountryCodeNotRequired = "auth/country-code-not-required": "A user is created without a country code.",
        AuthBadEmailAccepted = "auth/bad-email-accepted": "A user is created with an invalid e-mail.",
        AuthBadCellphoneAccepted = "auth/bad-cellphone-accepted": "A user is created with an invalid phone.",
        AuthBadEmailOtherCode = "auth/bad-email-other-code": "An invalid e-mail is answered with another error code than 60027.",
        AuthErrorCodeNumber = "auth/error-code-number": "The error code of an invalid user is a number in place of a string.",
        AuthOtherIdForSameDevice = "auth/other-id-for-same-device": "A second e-mail for the same device makes a second user.",
        AuthIdSharedByPhones = "auth/id-shared-by-phones": "Users with different phones have the same id.",
        AuthCountryCodeIgnored = "auth/country-code-ignored": "The same number in two countries is one device.",
        AuthDashesChangeUser = "auth/dashes-change-user": "A phone written with dashes is another device.",
        AuthPeriodsChangeUser = "auth/periods-change-user": "A phone written with periods is another device.",
        AuthSpacesChangeUser = "auth/spaces-change-user": "A phone written with spaces is another device.",
        AuthInstalledAppIgnored = "auth/installed-app-ignored": "Enrolling a phone that has the app does not add the application to it.",
        AuthStatusOtherAuthId = "auth/status-other-auth-id": "The user status shows another user's id.",
        AuthStatusCountryCodeLost = "auth/status-country-code-lost": "The user status shows country code 0.",
        AuthPhoneUnmasked = "auth/phone-unmasked": "The user status shows the whole phone number.",
        AuthXmlMalformed = "auth/xml-malformed": "XML answers lack the last closing tag.",
        AuthXmlDiffers = "auth/xml-differs": "Every number in an XML answer is one higher than in JSON.",
        AuthXmlIsJson = "auth/xml-is-json": "The XML paths answer JSON.",
        AuthJsonIsXml = "auth/json-is-xml": "The JSON paths answer XML.",
        AuthMessageNotRequired = "auth/message-not-required": "An approval request is created without a message.",
        AuthDetailsKey21Kept = "auth/details-key-21-kept": "Keys of more than 20 characters are kept in details.",
        AuthHiddenDetailsKey21Kept = "auth/hidden-details-key-21-kept": "Keys of more than 20 characters are kept in hidden_details.",
        AuthDetailsKey20Refused = "auth/details-key-20-refused": "A key of 20 characters is refused in details.",
        AuthHiddenDetailsKey20Refused = "auth/hidden-details-key-20-refused": "A key of 20 characters is refused in hidden_details.",
        AuthDetailsTimestampMissing = "auth/details-timestamp-missing": "No timestamp is added to details.",
        AuthHiddenDetailsShown = "auth/hidden-details-shown": "Hidden details are among the details that the user sees.",
        AuthHiddenDetailsLost = "auth/hidden-details-lost": "Hidden details are not kept with the request.",
        AuthLogosWithoutDefaultAccepted = "auth/logos-without-default-accepted": "Logos without a default entry are accepted.",
        AuthLogoHttpAccepted = "auth/logo-http-accepted": "A logo url that is not HTTPS is accepted.",
        AuthLogoForeignResAccepted = "auth/logo-foreign-res-accepted": "A logo with an unknown res is accepted.",
        AuthDefaultExpiryOther = "auth/default-expiry-other": "Without seconds_to_expire a request expires after an hour.",
        AuthSecondsToExpireNotKept = "auth/seconds-to-expire-not-kept": "A request shows other seconds_to_expire than it was created with.",
        AuthZeroExpires = "auth/zero-expires": "A request with seconds_to_expire 0 expires at once.",
        AuthApprovalNeverExpires = "auth/approval-never-expires": "A request stays pending beyond its expiry.",
        AuthApprovalExpiresEarly = "auth/approval-expires-early": "A request expires after a tenth of its time.",
        AuthApprovalNotTaken = "auth/approval-not-taken": "A request stays pending when the user approves.",
        AuthDenialNotTaken = "auth/denial-not-taken": "A request stays pending when the user denies.",
        AuthDenialApproves = "auth/denial-approves": "A request is approved when the user denies.",
        AuthFinalStatusChanges = "auth/final-status-changes": "An approved request can be denied, and a denied one approved.",
        AuthExpiredCanBeApproved = "auth/expired-can-be-approved": "An expired request can still be approved or denied.",
        AuthApprovalOtherUuid = "auth/approval-other-uuid": "A fetched request shows another uuid.",
        AuthApprovalOtherAuthId = "auth/approval-other-auth-id": "A fetched request shows another user's id.",
        AuthDeviceWhilePending = "auth/device-while-pending": "A pending request shows a device.",
        AuthDeviceAfterExpiry = "auth/device-after-expiry": "An expired request shows a device.",
        AuthDeviceMissingWhenApproved = "auth/device-missing-when-approved": "An approved request shows no device.",
        AuthDeviceMissingWhenDenied = "auth/device-missing-when-denied": "A denied request shows no device.",
        AuthApproveCallbackMissing = "auth/approve-callback-missing": "An approval sends no callback.",
        AuthDenyCallbackMissing = "auth/deny-callback-missing": "A denial sends no callback.",
        // events
    }
}
