//! Variants: deliberate legal freedoms of the reference, which no rule may accuse.

super::faults::switches! {
    /// A legal freedom; conforming implementations differ in these.
    Variant {
        CreatedIs200 = "created-is-200": "Creation answers 200 in place of 201.",
        OtherErrorBody = "other-error-body": "Refusals carry plain text in place of a JSON object.",
        NumericOffset = "numeric-offset": "Timestamps spell GMT as +00:00.",
        FractionalSeconds = "fractional-seconds": "Timestamps carry milliseconds.",
        UppercaseHex = "uppercase-hex": "SIDs use upper-case hexadecimal digits.",
        OtherErrorStatus = "other-error-status": "Refusals carry other 4xx status codes.",
        EmptyErrorBody = "empty-error-body": "Refusals carry no body.",
        CharsetParameter = "charset-parameter": "The media type of JSON answers names its charset.",
        PrettyJson = "pretty-json": "JSON answers are indented.",
        ReversedKeys = "reversed-keys": "JSON objects list their keys in reverse order.",
        PageSizeRefused = "page-size-refused": "PageSize above the largest one is refused in place of cut.",
        PageSizeRaised = "page-size-raised": "PageSize 0 is raised to 1 in place of refused.",
        EmptyPageUrls = "empty-page-urls": "Where no page follows or precedes, its url is an empty text in place of null.",
        AbsentPageUrls = "absent-page-urls": "Where no page follows or precedes, its url is left out in place of null.",
        EmptyLastPage = "empty-last-page": "A walk ends on an empty page.",
        ShortPages = "short-pages": "A page may hold fewer items than its size although more follow.",
        OpaqueTokens = "opaque-tokens": "Page tokens hold characters that need percent-encoding.",
        // flow
        FlowFlowsNewestFirst = "flow/flows-newest-first": "Flows are listed newest first.",
        FlowDeleteAnswersBody = "flow/delete-answers-body": "Deleting a flow answers 200 and what was deleted.",
        FlowDraftRefusesExecutions = "flow/draft-refuses-executions": "A flow that was never published takes no executions.",
        FlowExecutionEndsAtOnce = "flow/execution-ends-at-once": "An execution has ended by the time the create answer shows it.",
        FlowContactPlaceholder = "flow/contact-placeholder": "contact_sid is a static placeholder.",
        FlowNeverUpdated = "flow/never-updated": "date_updated of flows and steps is always null.",
        FlowAlwaysUpdated = "flow/always-updated": "date_updated of flows and steps is never null.",
        FlowEmptyTransitions = "flow/empty-transitions": "A step without a widget before or after it shows an empty text in place of null.",
        FlowOneStepAtFirst = "flow/one-step-at-first": "A new execution has one step, still running.",
        FlowTiesOldestFirst = "flow/ties-oldest-first": "Executions of one second are listed oldest first among themselves.",
        FlowMoreLinks = "flow/more-links": "Links hold more keys than those seen.",
        FlowMoreContext = "flow/more-context": "The context holds more than the stated variables.",
        // chat
        // media
        // auth
        AuthFailureIs200 = "auth/failure-is-200": "Refusals answer 200 with success false.",
        AuthWithoutKey = "auth/without-key": "Requests without an API key are accepted.",
        AuthPhoneErrorAsEmail = "auth/phone-error-as-email": "An invalid phone is answered as an invalid e-mail is.",
        AuthQrCodeLink = "auth/qr-code-link": "A created user comes with a link to a QR code for other TOTP apps.",
        AuthXmlPlain = "auth/xml-plain": "XML answers have another root element and no type attributes.",
        AuthEpochDatetimes = "auth/epoch-datetimes": "Datetimes are seconds since 1970.",
        AuthCreateMinimal = "auth/create-minimal": "A created approval request shows its uuid only.",
        AuthDetailsNotShown = "auth/details-not-shown": "A fetched approval request shows neither message nor details.",
        AuthLongKeyCut = "auth/long-key-cut": "A key that is too long is cut in place of refused.",
        AuthAccountRecovered = "auth/account-recovered": "The device's last_account_recovery_at is set in place of null.",
        AuthExpiryCallback = "auth/expiry-callback": "A callback is sent on expiry too.",
        AuthCallbackTwice = "auth/callback-twice": "Every callback and webhook is delivered twice.",
        AuthCallbackIsGet = "auth/callback-is-get": "The approval callback is a GET request with the facts in its query.",
        AuthUnknownRegistrationPending = "auth/unknown-registration-pending": "An id that was never announced nor scanned is pending in place of not found.",
        AuthUnknownRegistrationExpired = "auth/unknown-registration-expired": "An id that was never announced nor scanned is expired in place of not found.",
        AuthWebhookExtraKeys = "auth/webhook-extra-keys": "Webhook payloads carry keys that no document names.",
        AuthWebhookNullablesSet = "auth/webhook-nullables-set": "The nullable fields of a webhook's app object are set.",
        // events
        EventsSchemaAddress = "events/schema-address": "Schemas are announced by their whole address.",
        EventsErrorCodeAbsent = "events/error-code-absent": "Failed and undelivered events carry no error_code.",
        EventsSparse = "events/sparse": "Payloads carry identifiers only.",
        EventsReordered = "events/reordered": "Events are collected in another order.",
        EventsRepeated = "events/repeated": "Each event is delivered twice.",
    }
}
