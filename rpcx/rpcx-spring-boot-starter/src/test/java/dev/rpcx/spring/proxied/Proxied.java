package dev.rpcx.spring.proxied;

import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import org.aopalliance.intercept.MethodInterceptor;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;

/** Services before which an aspect stands, as that of {@code @PreAuthorize} does. */
public final class Proxied {
    private Proxied() {}

    /** Publishes only methods before which a proxy can stand. */
    @RPCXServer("open")
    public static class Open {
        @Method
        public String pub() {
            return "passed by";
        }

        @Method
        protected String prot() {
            return "passed by";
        }

        @Method
        String pack() {
            return "passed by";
        }

        /** This method is not published. */
        private String priv() {
            return "own";
        }

        @Override
        public String toString() {
            return priv();
        }
    }

    @RPCXServer("closed")
    public static class Closed extends Base {
        @Method
        public String pub() {
            return "passed by";
        }

        @Method
        private String priv() {
            return "passed by";
        }

        @Method
        public final String fin() {
            return priv();
        }
    }

    public abstract static class Base {
        @Method
        public final String above() {
            return "passed by";
        }
    }

    public interface Api {
        String pub();
    }

    @RPCXServer("interfaces")
    public static class Interfaces implements Api {
        @Override
        @Method
        public String pub() {
            return "passed by";
        }
    }

    /** Refuses each call of the beans of a package. */
    public static BeanPostProcessor aspect(boolean ofClasses) {
        return new BeanPostProcessor() {
            @Override
            public Object postProcessAfterInitialization(Object bean, String name) {
                if (!bean.getClass().getName().startsWith(Proxied.class.getName())) {
                    return bean;
                }
                ProxyFactory proxies = new ProxyFactory(bean);
                proxies.setProxyTargetClass(ofClasses);
                proxies.addAdvice((MethodInterceptor) call -> {
                    throw RPCXException.refused(RPCXException.Code.UNAUTHENTICATED, "refused by the aspect");
                });
                return proxies.getProxy();
            }
        };
    }
}
