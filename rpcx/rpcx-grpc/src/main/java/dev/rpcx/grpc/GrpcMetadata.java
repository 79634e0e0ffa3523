package dev.rpcx.grpc;

import dev.rpcx.Metadata;
import dev.rpcx.internal.FrozenMap;
import io.netty.handler.codec.http2.Http2Headers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Maps the headers of a gRPC request to metadata, and the metadata of a reply to trailers. The values of binary
 * headers, whose names end with {@code -bin}, are Base64 in metadata too.
 */
final class GrpcMetadata {
    private static final String BINARY = "-bin";
    private static final String RESERVED = "grpc-";
    private static final String AUTHORIZATION = "authorization";
    private static final String BEARER = "bearer ";

    /**
     * Headers of the transport, some of which HTTP/2 forbids, and the trailers that RPCX itself adds. They are no
     * metadata, in either direction. Source: RFC 9113, section 8.2.2.
     */
    private static final Set<String> TRANSPORT = Set.of(
            "accept-encoding",
            "connection",
            "content-length",
            "content-type",
            "host",
            "keep-alive",
            "proxy-connection",
            GrpcHeaders.CODE.toString(),
            GrpcHeaders.EXECUTED.toString(),
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "user-agent");

    private GrpcMetadata() {}

    /**
     * Returns the metadata of a request. Values of headers with the same name are joined by commas.
     *
     * @param tokenEntry name of the entry that carries the caller's token. If the request has no such header, this
     *     entry gets the bearer token of the header {@code authorization}, which then is no entry of its own. Null if
     *     the server requires no token
     */
    static Metadata read(Http2Headers headers, @Nullable String tokenEntry) {
        LinkedHashMap<String, String> entries = new LinkedHashMap<>();
        for (Map.Entry<CharSequence, CharSequence> each : headers) {
            String name = each.getKey().toString();
            if (isMetadata(name)) {
                entries.merge(name, each.getValue().toString(), (one, next) -> one + ',' + next);
            }
        }
        String authorization = entries.get(AUTHORIZATION);
        if (tokenEntry != null
                && authorization != null
                && authorization.regionMatches(true, 0, BEARER, 0, BEARER.length())
                && !entries.containsKey(tokenEntry)) {
            entries.remove(AUTHORIZATION);
            entries.put(tokenEntry, authorization.substring(BEARER.length()).strip());
        }
        return entries.isEmpty() ? Metadata.EMPTY : Metadata.of(new FrozenMap<>(entries));
    }

    private static boolean isMetadata(String name) {
        return !name.isEmpty() && name.charAt(0) != ':' && !name.startsWith(RESERVED) && !TRANSPORT.contains(name);
    }

    /** Adds the metadata of a reply to its trailers. Entries whose names no header can have are left out. */
    static void add(Metadata metadata, Trailers trailers) {
        metadata.entries().forEach((entry, value) -> {
            String name = entry.toLowerCase(Locale.ROOT);
            if (isMetadata(name) && isHeaderName(name)) {
                if (name.endsWith(BINARY)) {
                    binaryValues(value).forEach(each -> trailers.add(name, each));
                } else if (isHeaderValue(value)) {
                    trailers.add(name, value);
                } else {
                    trailers.add(name + BINARY, base64(value.getBytes(StandardCharsets.UTF_8)));
                }
            }
        });
    }

    /** Returns the Base64 of a binary header, which has no padding. */
    static String base64(byte[] value) {
        return Base64.getEncoder().withoutPadding().encodeToString(value);
    }

    private static boolean isHeaderName(String name) {
        return name.chars().allMatch(c -> c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || "_-.".indexOf(c) >= 0);
    }

    private static boolean isHeaderValue(String value) {
        return value.chars().allMatch(c -> c >= ' ' && c < 0x7F) && value.equals(value.strip());
    }

    /**
     * Returns the values of a binary header, each without padding. A text that is Base64, or a list of it with commas
     * between, as {@link #read} makes it, stands for itself. Any other text is one value: its UTF-8.
     */
    private static List<String> binaryValues(String text) {
        List<String> values = new ArrayList<>();
        try {
            for (String each : text.split(",", -1)) {
                values.add(base64(Base64.getDecoder().decode(each.strip())));
            }
            return values;
        } catch (IllegalArgumentException other) {
            return List.of(base64(text.getBytes(StandardCharsets.UTF_8)));
        }
    }
}
