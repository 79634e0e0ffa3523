package dev.parley.transport.springweb;

import dev.parley.spi.CallException;
import dev.parley.spi.records.Photo;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import org.springframework.http.ResponseEntity;

/** A photo as a reply: the content as the body, the name as a header. */
public final class Photos {
    /** Holds the name, percent-encoded: a header holds ASCII only. */
    static final String NAME = "Parley-name";

    private Photos() {}

    static String written(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8);
    }

    public static Photo read(ResponseEntity<byte[]> reply) {
        String name = reply.getHeaders().getFirst(NAME);
        if (name == null) {
            throw new CallException(CallException.Code.PROTOCOL, "a photo without the header " + NAME);
        }
        byte @Nullable [] content = reply.getBody();
        return new Photo(URLDecoder.decode(name, StandardCharsets.UTF_8), content == null ? new byte[0] : content);
    }
}
