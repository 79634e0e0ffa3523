package dev.rpcx.grpc;

import io.netty.util.AsciiString;

/** Names and values of gRPC's headers. Source: gRPC over HTTP2, "Requests" and "Responses". */
final class GrpcHeaders {
    static final AsciiString CONTENT_TYPE = AsciiString.cached("content-type");
    static final AsciiString GRPC = AsciiString.cached("application/grpc");
    static final AsciiString GRPC_PROTO = AsciiString.cached("application/grpc+proto");

    static final AsciiString ALLOW = AsciiString.cached("allow");
    static final AsciiString POST = AsciiString.cached("POST");
    static final AsciiString STATUS_OK = AsciiString.cached("200");
    static final AsciiString METHOD_NOT_ALLOWED = AsciiString.cached("405");
    static final AsciiString UNSUPPORTED_MEDIA_TYPE = AsciiString.cached("415");

    static final AsciiString TIMEOUT = AsciiString.cached("grpc-timeout");
    static final AsciiString ENCODING = AsciiString.cached("grpc-encoding");
    static final AsciiString ACCEPT_ENCODING = AsciiString.cached("grpc-accept-encoding");
    static final AsciiString GZIP = AsciiString.cached("gzip");
    static final AsciiString IDENTITY = AsciiString.cached("identity");
    static final AsciiString ENCODINGS = AsciiString.cached("identity,gzip");

    static final AsciiString STATUS = AsciiString.cached("grpc-status");
    static final AsciiString MESSAGE = AsciiString.cached("grpc-message");
    static final AsciiString DETAILS = AsciiString.cached("grpc-status-details-bin");

    /** Trailer that says whether a failed call was executed: {@code not}, {@code yes} or {@code maybe}. */
    static final AsciiString EXECUTED = AsciiString.cached("rpcx-executed");

    /** Trailer with the code of a failed call, by its name in RPCX, since gRPC's codes are not one for one. */
    static final AsciiString CODE = AsciiString.cached("rpcx-code");

    private GrpcHeaders() {}

    /**
     * Returns whether a header must not enter the dynamic table of HPACK. Only headers that have few values may. A
     * client chooses how large the table is, and would otherwise make the server keep the metadata of all replies.
     */
    static boolean isSensitive(CharSequence name) {
        return !(name.length() > 0 && name.charAt(0) == ':'
                || AsciiString.contentEquals(CONTENT_TYPE, name)
                || AsciiString.contentEquals(ENCODING, name)
                || AsciiString.contentEquals(STATUS, name));
    }
}
