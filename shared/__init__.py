"""What two or more services need, in three layers: console, domain, platform. Imports go down only."""
