package dev.rpcx.grpc;

import dev.rpcx.internal.schema.ProtoNames;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.TranslatedWire;
import dev.rpcx.internal.wire.Settings;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandler;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * gRPC over HTTP/2, as one server speaks it.
 *
 * @param typePrefix what stands in front of the name of a detail, so that the two are the URL of a type
 * @param tokenEntry name of the metadata entry that carries a caller's token; null if the server requires none
 * @param methods methods of the server by the paths of gRPC, such as {@code /com.acme.Greeter/Hello}
 */
record GrpcWire(String typePrefix, @Nullable String tokenEntry, Map<String, ServerMethod> methods)
        implements TranslatedWire {
    /** The bytes with which every connection of HTTP/2 begins. Source: RFC 9113, section 3.4. */
    private static final byte[] PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** Services whose names are full names of gRPC. */
    private static final Set<String> DEFINED_BY_GRPC =
            Set.of(Health.NAME, ServerReflectionV1.NAME, ServerReflectionV1Alpha.NAME);

    static GrpcWire of(String protoPackage, @Nullable String tokenEntry, List<ServerMethod> methods) {
        String prefix = protoPackage.isEmpty() ? "" : protoPackage + '.';
        Map<String, ServerMethod> byPath = new HashMap<>();
        for (ServerMethod each : methods) {
            String service = DEFINED_BY_GRPC.contains(each.service())
                    ? each.service()
                    : ProtoNames.service(protoPackage, each.service());
            String path = '/' + service + '/' + ProtoNames.identifier(each.name());
            ServerMethod other = byPath.put(path, each);
            if (other != null) {
                throw new IllegalArgumentException("grpc: " + name(other) + " and " + name(each) + " are both " + path
                        + " (expected: names that differ in more than case and punctuation)");
            }
        }
        return new GrpcWire("type.googleapis.com/" + prefix, tokenEntry, byPath);
    }

    private static String name(ServerMethod method) {
        return method.service() + '/' + method.name();
    }

    /**
     * Returns true for each capital letter. So requests of HTTP/1 come here too, except those whose method begins with
     * the first letter of the native wire, and get an answer of HTTP/1.
     */
    @Override
    public boolean isBegunBy(int firstByte) {
        return firstByte >= 'A' && firstByte <= 'Z';
    }

    @Override
    public String applicationProtocol() {
        return "h2";
    }

    @Override
    public ChannelHandler translator(ServerConnection connection, Settings server, ByteBuf begin) {
        return isHttp2(begin) ? GrpcConnection.of(this, connection, server) : new HttpRefusal(connection);
    }

    private static boolean isHttp2(ByteBuf begin) {
        int bytes = Math.min(begin.readableBytes(), PREFACE.length);
        for (int i = 0; i < bytes; i++) {
            if (begin.getByte(begin.readerIndex() + i) != PREFACE[i]) {
                return false;
            }
        }
        return true;
    }
}
