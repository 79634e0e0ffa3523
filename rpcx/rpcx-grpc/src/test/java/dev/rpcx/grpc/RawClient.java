package dev.rpcx.grpc;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersDecoder;
import io.netty.handler.codec.http2.DefaultHttp2HeadersEncoder;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2FrameTypes;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A client of HTTP/2 that sends whatever frames a test wants, and does nothing by itself. */
final class RawClient implements AutoCloseable {
    static final String PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    static final int ACK = 1;
    static final int END_STREAM = 1;
    static final int END_HEADERS = 4;

    private final Socket socket;
    private final DataInputStream in;
    private final DefaultHttp2HeadersEncoder encoder = new DefaultHttp2HeadersEncoder();
    private final DefaultHttp2HeadersDecoder decoder = new DefaultHttp2HeadersDecoder(true);

    record Frame(int type, int flags, int stream, byte[] payload) {}

    /** Connects, and sends the preface and these settings, each of them 6 bytes. */
    RawClient(int port, byte... settings) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(30_000);
        in = new DataInputStream(socket.getInputStream());
        socket.getOutputStream().write(PREFACE.getBytes(StandardCharsets.US_ASCII));
        send(Http2FrameTypes.SETTINGS, 0, 0, settings);
    }

    /** Returns the headers of a call of gRPC. */
    static Http2Headers call(String method) {
        return new DefaultHttp2Headers()
                .method("POST")
                .scheme("http")
                .path("/com.acme.count.Counter/" + method)
                .authority("localhost")
                .set("te", "trailers")
                .set("content-type", "application/grpc");
    }

    /** Returns a message with its prefix. */
    static byte[] message(byte[] message) {
        return ByteBufUtil.getBytes(
                Unpooled.buffer().writeByte(0).writeInt(message.length).writeBytes(message));
    }

    /** Returns the message of a request whose field 1 is a text. */
    static byte[] text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return message(ByteBufUtil.getBytes(
                Unpooled.buffer().writeByte(0x0A).writeByte(bytes.length).writeBytes(bytes)));
    }

    void send(int type, int flags, int stream, byte... payload) throws IOException {
        socket.getOutputStream().write(frame(type, flags, stream, payload));
    }

    static byte[] frame(int type, int flags, int stream, byte... payload) {
        return ByteBufUtil.getBytes(Unpooled.buffer()
                .writeMedium(payload.length)
                .writeByte(type)
                .writeByte(flags)
                .writeInt(stream)
                .writeBytes(payload));
    }

    void write(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
    }

    void headers(int stream, Http2Headers headers, int flags) throws IOException {
        send(Http2FrameTypes.HEADERS, flags | END_HEADERS, stream, encoded(stream, headers));
    }

    byte[] encoded(int stream, Http2Headers headers) {
        ByteBuf block = Unpooled.buffer();
        try {
            encoder.encodeHeaders(stream, headers, block);
        } catch (Http2Exception e) {
            throw new IllegalStateException(e);
        }
        return ByteBufUtil.getBytes(block);
    }

    void data(int stream, byte[] data, int flags) throws IOException {
        send(Http2FrameTypes.DATA, flags, stream, data);
    }

    /** Reads the next frame. */
    Frame next() throws IOException {
        byte[] header = in.readNBytes(9);
        if (header.length < 9) {
            throw new IOException("the server has closed the connection");
        }
        ByteBuf head = Unpooled.wrappedBuffer(header);
        int length = head.readUnsignedMedium();
        int type = head.readUnsignedByte();
        int flags = head.readUnsignedByte();
        int stream = head.readInt();
        return new Frame(type, flags, stream, in.readNBytes(length));
    }

    /** Passes over frames until one of this type and stream comes. */
    Frame next(int type, int stream) throws IOException {
        Frame frame = next();
        while (frame.type() != type || frame.stream() != stream) {
            frame = next();
        }
        return frame;
    }

    /** Reads the next headers of a stream, and passes over what comes before. */
    Http2Headers first(int stream) throws IOException {
        while (true) {
            Frame frame = next();
            if (frame.type() == Http2FrameTypes.HEADERS) {
                Http2Headers headers = decoded(frame);
                if (frame.stream() == stream) {
                    return headers;
                }
            }
        }
    }

    /** Reads the headers that end a stream, and passes over what comes before. */
    Http2Headers last(int stream) throws IOException {
        while (true) {
            Frame frame = next();
            if (frame.type() == Http2FrameTypes.HEADERS) {
                Http2Headers headers = decoded(frame);
                if (frame.stream() == stream && (frame.flags() & END_STREAM) != 0) {
                    return headers;
                }
            }
        }
    }

    private Http2Headers decoded(Frame frame) {
        try {
            return decoder.decodeHeaders(frame.stream(), Unpooled.wrappedBuffer(frame.payload()));
        } catch (Http2Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
