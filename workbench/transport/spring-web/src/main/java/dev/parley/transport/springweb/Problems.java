package dev.parley.transport.springweb;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import java.util.Map;
import org.springframework.http.HttpStatus;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/** Errors of calls as HTTP statuses and problem details, and back. */
public final class Problems {
    /** The extension member that names the code. */
    static final String CODE = "code";

    private static final JsonMapper JSON = JsonMapper.shared();

    private Problems() {}

    static HttpStatus status(Code code) {
        return switch (code) {
            case DEADLINE_EXCEEDED -> HttpStatus.GATEWAY_TIMEOUT;
            case UNAVAILABLE -> HttpStatus.SERVICE_UNAVAILABLE;
            case REMOTE_ERROR -> HttpStatus.INTERNAL_SERVER_ERROR;
            case NOT_FOUND -> HttpStatus.NOT_FOUND;
            case INVALID -> HttpStatus.UNPROCESSABLE_CONTENT;
            // not 401: HttpURLConnection, Feign's default client, cannot read what comes with it
            case UNAUTHENTICATED -> HttpStatus.FORBIDDEN;
            case TOO_LARGE -> HttpStatus.CONTENT_TOO_LARGE;
            case PROTOCOL -> HttpStatus.BAD_GATEWAY;
        };
    }

    static Code code(int status) {
        return switch (status) {
            case 401, 403 -> Code.UNAUTHENTICATED;
            case 404 -> Code.NOT_FOUND;
            case 413 -> Code.TOO_LARGE;
            case 422 -> Code.INVALID;
            case 502 -> Code.PROTOCOL;
            case 503 -> Code.UNAVAILABLE;
            case 504 -> Code.DEADLINE_EXCEEDED;
            default -> status >= 500 ? Code.REMOTE_ERROR : Code.PROTOCOL;
        };
    }

    /**
     * What a status that is not 2xx says of the call.
     *
     * @param body problem details, or whatever the peer sent
     */
    public static CallException read(int status, byte[] body) {
        try {
            Map<String, Object> problem = JSON.readValue(body, new TypeReference<Map<String, Object>>() {});
            if (problem != null && problem.get(CODE) instanceof String name) {
                return new CallException(Code.valueOf(name), String.valueOf(problem.get("detail")));
            }
        } catch (JacksonException | IllegalArgumentException e) {
            return new CallException(code(status), "HTTP " + status, e);
        }
        return new CallException(code(status), "HTTP " + status);
    }
}
