package dev.rpcx.grpc;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2FrameAdapter;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.util.AsciiString;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Takes the frames of HTTP/2 that Netty has read and checked, and begins a call with the headers of each request, or
 * refuses it. Event loop only.
 */
final class GrpcFrames extends Http2FrameAdapter {
    /** Text of the error for a call of a method that the server does not publish, as on the native wire. */
    private static final String NOT_PUBLISHED = "no such service or method";

    private final GrpcConnection connection;

    GrpcFrames(GrpcConnection connection) {
        this.connection = connection;
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx,
            int streamId,
            Http2Headers headers,
            int streamDependency,
            short weight,
            boolean exclusive,
            int padding,
            boolean endOfStream) {
        onHeadersRead(ctx, streamId, headers, padding, endOfStream);
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx, int streamId, Http2Headers headers, int padding, boolean endOfStream) {
        GrpcCall call = connection.call(streamId);
        if (call != null) {
            // A client may end its side by trailers, whose content gRPC does not define.
            if (endOfStream) {
                call.request().onData(Unpooled.EMPTY_BUFFER, true);
            }
            return;
        }
        if (connection.isAnswered(streamId)) {
            // The stream was refused during this read, and these are the trailers of its request.
            return;
        }
        if (headers.method() == null || headers.scheme() == null || headers.path() == null) {
            // The request is malformed. Source: RFC 9113, section 8.3.1.
            connection.reset(streamId, Http2Error.PROTOCOL_ERROR);
            return;
        }
        Http2Headers wrong = refusalOfHttp(headers);
        if (wrong != null) {
            connection.refuse(streamId, wrong);
            return;
        }
        GrpcCall begun;
        try {
            begun = call(streamId, headers);
        } catch (RPCXException refused) {
            connection.refuse(streamId, connection.trailers(refused, true));
            return;
        }
        if (begun == null) {
            // The client may send the call again. Source: RFC 9113, section 8.7.
            connection.reset(streamId, Http2Error.REFUSED_STREAM);
        } else if (endOfStream) {
            begun.request().onData(Unpooled.EMPTY_BUFFER, true);
        }
    }

    /** Returns the answer of HTTP to a request that is none of gRPC; null if it is one. */
    private static @Nullable Http2Headers refusalOfHttp(Http2Headers headers) {
        if (!GrpcHeaders.POST.contentEquals(text(headers.method()))) {
            return new DefaultHttp2Headers(false)
                    .status(GrpcHeaders.METHOD_NOT_ALLOWED)
                    .set(GrpcHeaders.ALLOW, GrpcHeaders.POST);
        }
        AsciiString type = mediaType(headers.get(GrpcHeaders.CONTENT_TYPE));
        return type.contentEqualsIgnoreCase(GrpcHeaders.GRPC) || type.contentEqualsIgnoreCase(GrpcHeaders.GRPC_PROTO)
                ? null
                : new DefaultHttp2Headers(false).status(GrpcHeaders.UNSUPPORTED_MEDIA_TYPE);
    }

    private static CharSequence text(@Nullable CharSequence header) {
        return header == null ? "" : header;
    }

    /** Returns a content type without its parameters. Source: RFC 9110, section 8.3.1. */
    private static AsciiString mediaType(@Nullable CharSequence contentType) {
        AsciiString type = AsciiString.of(text(contentType));
        int end = type.indexOf(';', 0);
        return (end < 0 ? type : type.subSequence(0, end)).trim();
    }

    /**
     * Begins the call of a request.
     *
     * @return null if the client has too many calls under way
     * @throws RPCXException the call is refused
     */
    private @Nullable GrpcCall call(int streamId, Http2Headers headers) {
        ServerMethod method =
                connection.wire().methods().get(text(headers.path()).toString());
        if (method == null) {
            throw RPCXException.refused(RPCXException.Code.NOT_FOUND, NOT_PUBLISHED);
        }
        boolean isGzip = isGzip(text(headers.get(GrpcHeaders.ENCODING)));
        boolean answersInGzip = isGzip && acceptsGzip(headers);
        ByteBuf prelude = Unpooled.buffer();
        Varint.write(prelude, method.number());
        int head = Wire.REQUEST;
        CharSequence timeout = headers.get(GrpcHeaders.TIMEOUT);
        if (timeout != null) {
            long micros = GrpcTimeout.micros(timeout);
            if (micros == GrpcTimeout.MALFORMED) {
                throw RPCXException.refused(
                        RPCXException.Code.INVALID,
                        "grpc-timeout " + timeout + " (expected: up to 8 digits and one of H, M, S, m, u and n)");
            }
            Varint.write(prelude, micros);
            head |= Wire.TIME;
        }
        Metadata metadata = GrpcMetadata.read(headers, connection.wire().tokenEntry());
        if (!metadata.isEmpty()) {
            MetadataFields.write(prelude, metadata);
            head |= Wire.METADATA;
        }
        int id = connection.ids().next();
        if (id == CallIds.NONE) {
            return null;
        }
        GrpcCall call = new GrpcCall(
                connection, connection.connection().stream(streamId), id, method, isGzip, answersInGzip, head, prelude);
        connection.begin(call, method.items() != null);
        return call;
    }

    private static boolean isGzip(CharSequence encoding) {
        if (GrpcHeaders.GZIP.contentEquals(encoding)) {
            return true;
        }
        if (encoding.length() > 0 && !GrpcHeaders.IDENTITY.contentEquals(encoding)) {
            // gRPC has the status of an unknown method for an unknown encoding.
            throw RPCXException.refused(
                    RPCXException.Code.NOT_FOUND, "grpc-encoding " + encoding + " (expected: identity or gzip)");
        }
        return false;
    }

    private static boolean acceptsGzip(Http2Headers headers) {
        return headers.getAll(GrpcHeaders.ACCEPT_ENCODING).stream()
                .flatMap(list -> Stream.of(AsciiString.of(list).split(',')))
                .anyMatch(encoding -> GrpcHeaders.GZIP.contentEquals(encoding.trim()));
    }

    @Override
    public int onDataRead(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean endOfStream) {
        int bytes = data.readableBytes() + padding;
        GrpcCall call = connection.call(streamId);
        return call == null ? bytes : bytes - call.request().onData(data, endOfStream);
    }

    @Override
    public void onSettingsRead(ChannelHandlerContext ctx, Http2Settings settings) throws Http2Exception {
        connection.onSettings(settings);
    }

    @Override
    public void onPingRead(ChannelHandlerContext ctx, long data) throws Http2Exception {
        connection.countControlFrame();
    }

    @Override
    public void onPingAckRead(ChannelHandlerContext ctx, long data) {
        connection.onPingAck(data);
    }
}
