//! Faults: deliberate defects of the reference, one per way to break a statement.
//!
//! A fault is a switch and nothing more: the broken behaviour stands where the right one does, as
//! `if core.fails(Fault::…)`. What each one must be caught by is recorded in the kill matrix.

macro_rules! switches {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $id:literal: $says:literal,)* }) => {
        $(#[$doc])*
        #[expect(clippy::doc_markdown, reason = "the texts are printed as they stand, without markup")]
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
        // flow: credentials
        FlowCredentialsNotNeeded = "flow/credentials-not-needed": "Requests without credentials are served.",
        FlowPasswordNotChecked = "flow/password-not-checked": "A known user name is served with any password.",
        FlowUserNotChecked = "flow/user-not-checked": "Unknown user names are served.",
        FlowApiKeyRefused = "flow/api-key-refused": "An API key with its secret is refused.",
        FlowAccountSidRefused = "flow/account-sid-refused": "The account SID with the auth token is refused.",
        // flow: flows
        FlowVersionStartsAtOne = "flow/version-starts-at-one": "A draft nobody has published shows version 1.",
        FlowVersionFalls = "flow/version-falls": "Publishing a flow lowers its version.",
        FlowFlowSidChanges = "flow/flow-sid-changes": "A fetched flow shows another SID than it is fetched by.",
        FlowListedFlowDiffers = "flow/listed-flow-differs": "A flow's name in the list is not the one that a fetch shows.",
        FlowFlowUrlWrong = "flow/flow-url-wrong": "A flow's url leads to no flow.",
        FlowExecutionsLinkWrong = "flow/executions-link-wrong": "A flow's link to its executions leads nowhere.",
        FlowAccountSidDiffers = "flow/account-sid-differs": "Listed resources name another account than fetched ones.",
        FlowDateCreatedMoves = "flow/date-created-moves": "A fetch shows a later creation than the list and the create answer.",
        FlowDeleteDoesNothing = "flow/delete-does-nothing": "A deleted flow is still served.",
        FlowDeletedStaysListed = "flow/deleted-stays-listed": "A deleted flow stays in the list.",
        FlowDeleteKeepsExecutions = "flow/delete-keeps-executions": "Executions of a deleted flow are still served.",
        FlowDeleteTakesAll = "flow/delete-takes-all": "Deleting one flow deletes every flow.",
        // flow: executions
        FlowToNotRequired = "flow/to-not-required": "An execution is created without To.",
        FlowFromNotRequired = "flow/from-not-required": "An execution is created without From.",
        FlowParametersRequired = "flow/parameters-required": "An execution without Parameters is refused.",
        FlowParametersNotParsed = "flow/parameters-not-parsed": "Parameters that are no JSON are taken as they stand.",
        FlowParametersLost = "flow/parameters-lost": "Parameters do not reach the context.",
        FlowParametersStayText = "flow/parameters-stay-text": "Parameters stand in the context as one text.",
        FlowMessagingServiceRefused = "flow/messaging-service-refused": "A messaging service SID is refused as From.",
        FlowContactAddressIsFrom = "flow/contact-address-is-from": "contact_channel_address holds From in place of To.",
        FlowContextLosesTo = "flow/context-loses-to": "The context does not hold To as contact.channel.address.",
        FlowContextLosesFrom = "flow/context-loses-from": "The context does not hold From as flow.channel.address.",
        FlowAddressMaskedOnFetch = "flow/address-masked-on-fetch": "A fetched execution hides the address that the create answer shows.",
        FlowListedExecutionDiffers = "flow/listed-execution-differs": "A listed execution hides the address that a fetch shows.",
        FlowExecutionNotStored = "flow/execution-not-stored": "A created execution can neither be fetched nor listed.",
        FlowNewestNotListed = "flow/newest-not-listed": "The newest execution is missing from the list.",
        FlowExecutionSidReused = "flow/execution-sid-reused": "Every execution has the SID of the first one.",
        FlowExecutionSidChanges = "flow/execution-sid-changes": "A fetched execution shows another SID than it is fetched by.",
        FlowExecutionFlowSidWrong = "flow/execution-flow-sid-wrong": "An execution names another flow than its own.",
        FlowExecutionUrlWrong = "flow/execution-url-wrong": "An execution's url leads to no execution.",
        FlowStepsLinkWrong = "flow/steps-link-wrong": "An execution's link to its steps leads nowhere.",
        FlowUpdatedBeforeCreated = "flow/updated-before-created": "An execution was updated before it was created.",
        FlowExecutionNeverEnds = "flow/execution-never-ends": "An execution stays active after its person was removed.",
        FlowEndedBecomesActive = "flow/ended-becomes-active": "An ended execution is active again when fetched a second time.",
        FlowExecutionsOldestFirst = "flow/executions-oldest-first": "Executions are listed oldest first.",
        FlowExecutionsOfAllListed = "flow/executions-of-all-listed": "A flow's list holds executions of all flows.",
        FlowFromFilterIgnored = "flow/from-filter-ignored": "DateCreatedFrom has no effect.",
        FlowFromFilterExclusive = "flow/from-filter-exclusive": "DateCreatedFrom leaves out what was created at that very second.",
        FlowToFilterIgnored = "flow/to-filter-ignored": "DateCreatedTo has no effect.",
        FlowToFilterInclusive = "flow/to-filter-inclusive": "DateCreatedTo lets in what was created at that very second.",
        FlowFiltersNotCombined = "flow/filters-not-combined": "With both date filters an execution needs to pass only one.",
        FlowFilterOffsetIgnored = "flow/filter-offset-ignored": "The offset of a date filter has no effect.",
        // flow: steps
        FlowStepsMissing = "flow/steps-missing": "An execution has no steps.",
        FlowVariablesNeverSet = "flow/variables-never-set": "The end of a step sets no variables.",
        FlowStepSidChanges = "flow/step-sid-changes": "A fetched step shows another SID than it is fetched by.",
        FlowListedStepDiffers = "flow/listed-step-differs": "A step's name in the list is not the one that a fetch shows.",
        FlowStepFlowSidWrong = "flow/step-flow-sid-wrong": "A step names another flow than its own.",
        FlowStepExecutionSidWrong = "flow/step-execution-sid-wrong": "A step names another execution than its own.",
        FlowStepUrlWrong = "flow/step-url-wrong": "A step's url leads to no step.",
        FlowStepsOldestFirst = "flow/steps-oldest-first": "Steps are listed oldest first.",
        FlowStepsOfAllListed = "flow/steps-of-all-listed": "An execution's list holds steps of other executions.",
        // flow: paging
        FlowPageRepeats = "flow/page-repeats": "The next page begins with the last item of the page before.",
        FlowPageSkips = "flow/page-skips": "The next page leaves out its first item.",
        FlowPageNeverEnds = "flow/page-never-ends": "The last page leads to the first one.",
        FlowPageStopsEarly = "flow/page-stops-early": "The first page leads nowhere although more follows.",
        FlowPageForgetsFilters = "flow/page-forgets-filters": "Page links leave out the filters of the list.",
        FlowPageSizeIgnored = "flow/page-size-ignored": "PageSize has no effect.",
        FlowPageSizeDefault = "flow/page-size-default": "A page holds 20 items where PageSize is left out.",
        FlowPageSizeUnbounded = "flow/page-size-unbounded": "PageSize above 1000 is honoured.",
        FlowPageSizeZero = "flow/page-size-zero": "PageSize 0 is honoured.",
        FlowPageOverfull = "flow/page-overfull": "A page holds one item more than its size.",
        FlowMetaKeyWrong = "flow/meta-key-wrong": "meta.key names no array of the answer.",
        FlowMetaPageSizeWrong = "flow/meta-page-size-wrong": "meta.page_size is not the size of the page.",
        // chat: paging, in listing.rs
        ChatPageRepeats = "chat/page-repeats": "The next page begins with the last item of the page before.",
        ChatPageSkips = "chat/page-skips": "The next page leaves out its first item.",
        ChatPageNeverEnds = "chat/page-never-ends": "The last page leads to the first one.",
        ChatPageStopsEarly = "chat/page-stops-early": "The first page leads nowhere although more follows.",
        ChatPageForgetsFilters = "chat/page-forgets-filters": "Page links leave out the filters of the list.",
        ChatPageSizeIgnored = "chat/page-size-ignored": "PageSize has no effect.",
        ChatPageSizeDefault = "chat/page-size-default": "A page holds 20 items where PageSize is left out.",
        ChatPageSizeUnbounded = "chat/page-size-unbounded": "PageSize above 1000 is honoured.",
        ChatPageSizeZero = "chat/page-size-zero": "PageSize 0 is honoured.",
        ChatPageOverfull = "chat/page-overfull": "A page holds one item more than its size.",
        ChatMetaKeyWrong = "chat/meta-key-wrong": "meta.key names no array of the answer.",
        ChatMetaPageSizeWrong = "chat/meta-page-size-wrong": "meta.page_size is not the size of the page.",
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
        AuthTokenAlgUnchecked = "auth/token-alg-unchecked": "Registration tokens signed with HS384 or HS512 are accepted.",
        AuthTokenNoneAccepted = "auth/token-none-accepted": "Registration tokens with alg none are accepted unsigned.",
        AuthTokenTypUnchecked = "auth/token-typ-unchecked": "Registration tokens with another typ than JWT are accepted.",
        AuthTokenSignatureUnchecked = "auth/token-signature-unchecked": "Registration tokens signed with another key are accepted.",
        AuthTokenIssUnchecked = "auth/token-iss-unchecked": "Registration tokens issued under another name are accepted.",
        AuthTokenLifetimeUnchecked = "auth/token-lifetime-unchecked": "Registration tokens with more than 15 minutes from iat to exp are accepted.",
        AuthTokenFarExpiryAccepted = "auth/token-far-expiry-accepted": "Registration tokens that expire more than 15 minutes from now are accepted.",
        AuthTokenExpiredAccepted = "auth/token-expired-accepted": "Expired registration tokens are accepted.",
        AuthTokenFifteenMinutesRefused = "auth/token-fifteen-minutes-refused": "Registration tokens that live for exactly 15 minutes are refused.",
        AuthScanStaysPending = "auth/scan-stays-pending": "A registration is not completed by a successful scan.",
        AuthCompletedWithoutScan = "auth/completed-without-scan": "A registration is completed before any scan.",
        AuthRegistrationNeverExpires = "auth/registration-never-expires": "A registration stays pending after its token expired.",
        AuthRegistrationOtherAuthId = "auth/registration-other-auth-id": "A completed registration shows another user's id.",
        AuthCompletedWebhookMissing = "auth/completed-webhook-missing": "A completed registration sends no webhook.",
        AuthFailedWebhookMissing = "auth/failed-webhook-missing": "A failed registration sends no webhook.",
        AuthWebhookIsGet = "auth/webhook-is-get": "Registration webhooks are GET requests.",
        AuthWebhookEventsSwapped = "auth/webhook-events-swapped": "Completed registrations are reported as failed and failed ones as completed.",
        AuthWebhookTimeNotIso = "auth/webhook-time-not-iso": "The time of a webhook's event is not ISO 8601.",
        AuthWebhookIpInClear = "auth/webhook-ip-in-clear": "The ip in a webhook is not hashed.",
        AuthWebhookPhoneInClear = "auth/webhook-phone-in-clear": "The phone number in a webhook is not hashed.",
        AuthWebhookOtherAuthId = "auth/webhook-other-auth-id": "A webhook names another user's id than registration status.",
        AuthWebhookOtherCustomId = "auth/webhook-other-custom-id": "A webhook names another custom user id than the token.",
        AuthCompletedWithError = "auth/completed-with-error": "The webhook of a completed registration carries an error object.",
        AuthFailedWithRegistration = "auth/failed-with-registration": "The webhook of a failed registration carries a registration object.",
        AuthWebhookEmpty = "auth/webhook-empty": "A registration webhook is an empty object.",
        AuthWebhookParamsEmpty = "auth/webhook-params-empty": "A webhook's params are empty.",
        AuthWebhookEventEmpty = "auth/webhook-event-empty": "A webhook's event is empty.",
        AuthWebhookAppEmpty = "auth/webhook-app-empty": "A webhook's app object is empty.",
        AuthWebhookRegistrationEmpty = "auth/webhook-registration-empty": "A webhook's registration object is empty.",
        AuthWebhookUserEmpty = "auth/webhook-user-empty": "A webhook's user object is empty.",
        AuthWebhookErrorEmpty = "auth/webhook-error-empty": "A webhook's error object is empty.",
        AuthWebhookRequestEmpty = "auth/webhook-request-empty": "A webhook's request object is empty.",
        AuthWebhookMistyped = "auth/webhook-mistyped": "A webhook's own fields have other types.",
        AuthWebhookParamsMistyped = "auth/webhook-params-mistyped": "The fields of a webhook's params have other types.",
        AuthWebhookEventMistyped = "auth/webhook-event-mistyped": "The fields of a webhook's event have other types.",
        AuthWebhookAppMistyped = "auth/webhook-app-mistyped": "The fields of a webhook's app object have other types.",
        AuthWebhookRegistrationMistyped = "auth/webhook-registration-mistyped": "The fields of a webhook's registration object have other types.",
        AuthWebhookUserMistyped = "auth/webhook-user-mistyped": "The fields of a webhook's user object have other types.",
        AuthWebhookErrorMistyped = "auth/webhook-error-mistyped": "The fields of a webhook's error object have other types.",
        AuthWebhookRequestMistyped = "auth/webhook-request-mistyped": "The fields of a webhook's request object have other types.",
        // events
    }
}
