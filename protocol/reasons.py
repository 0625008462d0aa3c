"""Why a cell, job or row ended or waits: codes, and what each means for a person."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """A reason code as it is stored and shown."""

    NO_CANDIDATE = "no_candidate"
    DUPLICATE_EXHAUSTED = "duplicate_exhausted"
    FILTER_EXHAUSTED = "filter_exhausted"
    METADATA_FAILED = "metadata_failed"
    RATE_LIMITED = "rate_limited"
    AUTH_FAILED = "auth_failed"
    RESTRICTED = "restricted"
    DOWNLOAD_TIMEOUT = "download_timeout"
    DOWNLOAD_FAILED = "download_failed"
    INTEGRITY_FAILED = "integrity_failed"
    DISK_FULL = "disk_full"
    REMOTE_HTTP_ERROR = "remote_http_error"
    NETWORK_ERROR = "network_error"
    DELIVERY_FAILED = "delivery_failed"
    DELIVERY_REJECTED = "delivery_rejected"
    DELIVERY_ABANDONED = "delivery_abandoned"
    DELIVERY_UNCERTAIN = "delivery_uncertain"
    EXECUTION_TIMEOUT = "execution_timeout"
    QUEUED_TOO_LONG = "queued_too_long"
    STALLED = "stalled"
    LOCKED_WORK_UNAVAILABLE = "locked_work_unavailable"
    CRASHED_REPEATEDLY = "crashed_repeatedly"
    ARTIFACT_MISSING = "artifact_missing"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    CONFIGURATION_ERROR = "configuration_error"
    CANCELLED_BY_OPERATOR = "cancelled_by_operator"
    OVERLAP_SKIPPED = "overlap_skipped"
    RESTORED = "restored"
    INTERNAL_ERROR = "internal_error"


class Stage(StrEnum):
    """The step of a slot's life to which a reason belongs."""

    ADMISSION = "admission"
    SELECTION = "selection"
    DOWNLOAD = "download"
    DELIVERY = "delivery"


class Meaning(msgspec.Struct, frozen=True):
    """What a reason code says beyond its name."""

    stage: Stage
    retryable: bool
    hint: str


MEANINGS: dict[Reason, Meaning] = {
    Reason.NO_CANDIDATE: Meaning(Stage.SELECTION, False, "The source listed nothing. Widen the target."),
    Reason.DUPLICATE_EXHAUSTED: Meaning(
        Stage.SELECTION,
        False,
        "Every candidate has been posted before. Widen the target.",
    ),
    Reason.FILTER_EXHAUSTED: Meaning(
        Stage.SELECTION, False, "The filters refused every candidate. Loosen them."
    ),
    Reason.METADATA_FAILED: Meaning(
        Stage.SELECTION, True, "Pixiv's answer could not be read; it is asked again."
    ),
    Reason.RATE_LIMITED: Meaning(Stage.SELECTION, True, "Pixiv asked for a pause; the cell waits."),
    Reason.AUTH_FAILED: Meaning(Stage.SELECTION, True, "Pixiv refused the login. Run: pixivflow login"),
    Reason.RESTRICTED: Meaning(
        Stage.SELECTION, False, "The account may not see the work. Check its view settings."
    ),
    Reason.DOWNLOAD_TIMEOUT: Meaning(Stage.DOWNLOAD, True, "The image host was too slow; it is tried again."),
    Reason.DOWNLOAD_FAILED: Meaning(Stage.DOWNLOAD, True, "A page could not be stored; it is tried again."),
    Reason.INTEGRITY_FAILED: Meaning(Stage.DOWNLOAD, True, "A page arrived damaged; it is fetched again."),
    Reason.DISK_FULL: Meaning(Stage.DOWNLOAD, True, "Free some space; downloads go on by themselves."),
    Reason.REMOTE_HTTP_ERROR: Meaning(
        Stage.DOWNLOAD, True, "Pixiv answered with an error; it is asked again."
    ),
    Reason.NETWORK_ERROR: Meaning(
        Stage.DOWNLOAD, True, "Pixiv could not be reached. Check network and proxy."
    ),
    Reason.DELIVERY_FAILED: Meaning(
        Stage.DELIVERY, False, "The receiver did not take it. See: pixivflow outbox list"
    ),
    Reason.DELIVERY_REJECTED: Meaning(
        Stage.DELIVERY, False, "The receiver refused the work. See its answer."
    ),
    Reason.DELIVERY_ABANDONED: Meaning(Stage.DELIVERY, False, "It waited for its receiver until it expired."),
    Reason.DELIVERY_UNCERTAIN: Meaning(
        Stage.DELIVERY, False, "Look at the receiver: nobody knows if it was posted."
    ),
    Reason.EXECUTION_TIMEOUT: Meaning(
        Stage.DOWNLOAD,
        False,
        "The run took longer than its timeout allows. Raise timeout, or look at the network.",
    ),
    Reason.QUEUED_TOO_LONG: Meaning(Stage.ADMISSION, False, "It waited too long for its turn."),
    Reason.STALLED: Meaning(Stage.DOWNLOAD, True, "The run made no progress and was taken back."),
    Reason.LOCKED_WORK_UNAVAILABLE: Meaning(
        Stage.DOWNLOAD, False, "The work it was bound to is gone; another is never taken in its place."
    ),
    Reason.CRASHED_REPEATEDLY: Meaning(
        Stage.DOWNLOAD, False, "The daemon died on it several times in a row."
    ),
    Reason.ARTIFACT_MISSING: Meaning(Stage.DELIVERY, False, "A file to be delivered is gone or was changed."),
    Reason.PAYLOAD_TOO_LARGE: Meaning(Stage.DELIVERY, False, "The receiver takes no files of this size."),
    Reason.CONFIGURATION_ERROR: Meaning(Stage.ADMISSION, False, "Run: pixivflow config check"),
    Reason.CANCELLED_BY_OPERATOR: Meaning(Stage.ADMISSION, False, "Somebody cancelled it."),
    Reason.OVERLAP_SKIPPED: Meaning(Stage.ADMISSION, False, "The slot before it was still running."),
    Reason.RESTORED: Meaning(Stage.ADMISSION, False, "It was due before a backup was restored."),
    Reason.INTERNAL_ERROR: Meaning(Stage.ADMISSION, True, "A fault in PixivFlow; the log has the traceback."),
}
