package dev.rpcx.spring.twice;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import org.springframework.boot.autoconfigure.AutoConfigurationPackage;
import org.springframework.context.annotation.Configuration;

/** Two classes of one service. */
@Configuration(proxyBeanMethods = false)
@AutoConfigurationPackage
public class Twice {
    @RPCXServer("same")
    public static class One {
        @Method
        public int number() {
            return 1;
        }
    }

    @RPCXServer("same")
    public static class Two {
        @Method
        public int number() {
            return 2;
        }
    }
}
