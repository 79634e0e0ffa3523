package dev.rpcx.spring.scoped;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;

/** A service that is made anew for each call. */
@Configuration(proxyBeanMethods = false)
public class Scoped {
    @RPCXServer("scoped")
    public static class Each {
        private final String field = "its field";

        @Method
        public String field() {
            return field;
        }
    }

    @Bean
    @Scope(scopeName = "prototype", proxyMode = ScopedProxyMode.TARGET_CLASS)
    Each each() {
        return new Each();
    }
}
