/**
 * What the technologies on Spring MVC have in common: a Boot application with embedded Tomcat that serves a contract through an annotated
 * controller, and the problem details in which an error travels.
 *
 * <p>Starting points: {@link dev.parley.transport.springweb.SpringMvcServer}, {@link dev.parley.transport.springweb.Problems}. Handlers run
 * on Tomcat's request threads. Not a technology itself; imports the SPI and Spring.
 */
@NullMarked
package dev.parley.transport.springweb;

import org.jspecify.annotations.NullMarked;
