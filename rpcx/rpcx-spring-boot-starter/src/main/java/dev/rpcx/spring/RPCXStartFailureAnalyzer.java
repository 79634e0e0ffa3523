package dev.rpcx.spring;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Makes the text that Spring Boot prints for a {@link RPCXStartException}. */
final class RPCXStartFailureAnalyzer extends AbstractFailureAnalyzer<RPCXStartException> {
    RPCXStartFailureAnalyzer() {}

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, RPCXStartException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
