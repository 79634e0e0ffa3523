package dev.parley.transport.springweb;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import jakarta.servlet.ServletException;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.ErrorResponse;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Every error as problem details with the code of the call, which a status alone could not carry. Source: RFC 9457, section 3.2. */
@RestControllerAdvice
class ProblemAdvice {
    @ExceptionHandler
    ProblemDetail unreadable(HttpMessageNotReadableException e) {
        return problem(
                Code.PROTOCOL, HttpStatus.BAD_REQUEST, e.getMostSpecificCause().getMessage());
    }

    /** Spring's own refusals keep their status: no such route, a method or media type that is not served. */
    @ExceptionHandler
    ProblemDetail any(Exception e) {
        if (e instanceof ErrorResponse refusal) {
            return problem(Problems.code(refusal.getStatusCode().value()), refusal.getStatusCode(), e.getMessage());
        }
        // Spring wraps what is not an exception
        Throwable thrown = e instanceof ServletException && e.getCause() instanceof Error error ? error : e;
        CallException fault = CallException.of(thrown);
        return problem(fault.code(), Problems.status(fault.code()), fault.getMessage());
    }

    private static ProblemDetail problem(
            Code code,
            org.springframework.http.HttpStatusCode status,
            @org.jspecify.annotations.Nullable String message) {
        ProblemDetail problem = ProblemDetail.forStatusAndDetail(status, String.valueOf(message));
        problem.setProperty(Problems.CODE, code.name());
        return problem;
    }
}
