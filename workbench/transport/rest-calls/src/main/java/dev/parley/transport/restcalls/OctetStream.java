package dev.parley.transport.restcalls;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;

/** A large content as a body by itself: the words about it are query parameters of a request and headers of a reply. */
final class OctetStream {
    static final String MEDIA_TYPE = "application/octet-stream";

    private OctetStream() {}

    static String header(String word) {
        return "Parley-" + word;
    }

    /** As a query or a header holds it: ASCII. */
    static String encoded(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8);
    }

    static String decoded(String value) {
        return URLDecoder.decode(value, StandardCharsets.UTF_8);
    }

    static String query(Map<String, String> words) {
        return words.entrySet().stream()
                .map(word -> encoded(word.getKey()) + "=" + encoded(word.getValue()))
                .collect(Collectors.joining("&", "?", ""));
    }
}
